"""`cairnq cancel`: end a queued task, ask a running one to leave."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cairnq_supervisor.commands.shape import Commands, command, database_options, task_or_key

if TYPE_CHECKING:
    from cairnq.client import CairnQ
    from cairnq_supervisor.commands.answer import Answer


def add(commands: Commands) -> None:
    parser = command(
        commands,
        "cancel",
        _act,
        does="Cancel a task. A queued one ends at once; a running one is asked to leave.",
        example="  cairnq cancel task_01KB2M4Z8Q7W3V6T5R9P1N0JHX\n  cairnq cancel --key report-2026-12\n",
    )
    task_or_key(parser)
    database_options(parser)


def _act(options: argparse.Namespace) -> int:
    from cairnq_supervisor.commands.serving import with_client

    return with_client(options, lambda client: _cancel(client, options))


async def _cancel(client: CairnQ, options: argparse.Namespace) -> Answer:
    from cairnq_supervisor.commands.answer import Answer
    from cairnq_supervisor.commands.finding import not_done
    from cairnq_supervisor.commands.shown import task_json

    task = await (client.cancel(options.id) if options.key is None else client.cancel_by_key(options.key))
    if task is None:
        raise await not_done(client, options, "cancel")
    what = "canceled" if task.canceled else "is running and was asked to leave"
    return Answer(task_json(task), [f"{task.id} {what}"])
