"""`cairnq purge`: delete finished tasks of an age, in bounded batches."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cairnq_supervisor.commands.shape import FINISHED, Commands, command, database_options, milliseconds, whole

if TYPE_CHECKING:
    from cairnq.client import CairnQ
    from cairnq_supervisor.commands.answer import Answer

_BATCH = 1000


def add(commands: Commands) -> None:
    parser = command(
        commands,
        "purge",
        _act,
        does="Delete tasks that finished longer ago than an age. Queued and running ones are never touched.",
        example="  cairnq purge --older-than 7d --status succeeded\n  cairnq purge --older-than 0s --queue trial\n",
    )
    parser.add_argument("--older-than", type=milliseconds, required=True, metavar="DURATION", help="since their end")
    parser.add_argument("--queue", metavar="QUEUE")
    parser.add_argument("--status", choices=FINISHED)
    parser.add_argument("--name", metavar="NAME")
    parser.add_argument("--limit", type=whole(1), metavar="N", help="stop after so many")
    database_options(parser)


def _act(options: argparse.Namespace) -> int:
    from cairnq_supervisor.commands.serving import with_client

    return with_client(options, lambda client: _purge(client, options))


async def _purge(client: CairnQ, options: argparse.Namespace) -> Answer:
    from cairnq_supervisor.commands.answer import Answer

    deleted = 0
    while options.limit is None or deleted < options.limit:
        batch = _BATCH if options.limit is None else min(_BATCH, options.limit - deleted)
        gone = await client.purge(
            older_than_ms=options.older_than,
            queue=options.queue,
            status=options.status,
            name=options.name,
            limit=batch,
        )
        deleted += len(gone)
        if len(gone) < batch:
            break
    return Answer({"deleted": deleted}, [f"{deleted:,} finished task(s) deleted"])
