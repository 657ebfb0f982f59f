"""`cairnq stats`: how many tasks there are, by queue and status."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cairnq_supervisor.commands.shape import STATUSES, Commands, command, database_options
from cairnq_supervisor.pure.tabular import Column, Table

if TYPE_CHECKING:
    from cairnq.client import CairnQ
    from cairnq_supervisor.commands.answer import Answer


def add(commands: Commands) -> None:
    parser = command(
        commands,
        "stats",
        _act,
        does="Count tasks by queue and status. It reads every row: for people, not for a loop.",
        example="  cairnq stats\n  cairnq stats mail --json\n",
    )
    parser.add_argument("queue", nargs="?", metavar="QUEUE", help="this one alone")
    database_options(parser)


def _act(options: argparse.Namespace) -> int:
    from cairnq_supervisor.commands.serving import with_client

    return with_client(options, lambda client: _stats(client, options.queue))


async def _stats(client: CairnQ, queue: str | None) -> Answer:
    from cairnq_supervisor.commands.answer import Answer

    counts = {
        name: {str(status): count for status, count in by_status.items()}
        for name, by_status in (await client.stats(queue)).items()
    }
    if not counts:
        return Answer({}, ["there is no task"])
    columns = [Column("queue"), *(Column(status, right=True, whole=True) for status in STATUSES)]
    rows = [[name, *(f"{counts[name][status]:,}" for status in STATUSES)] for name in sorted(counts)]
    return Answer(counts, [Table(columns, rows)])
