"""`cairnq get`: one task."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cairnq_supervisor.commands.shape import Commands, command, database_options, task_or_key

if TYPE_CHECKING:
    from cairnq.client import CairnQ
    from cairnq_supervisor.commands.answer import Answer


def add(commands: Commands) -> None:
    example = "  cairnq get task_01KB2M4Z8Q7W3V6T5R9P1N0JHX\n  cairnq get --key report-2026-12 --json\n"
    parser = command(commands, "get", _act, does="Show one task. Exit code 1 if there is none.", example=example)
    task_or_key(parser)
    database_options(parser)


def _act(options: argparse.Namespace) -> int:
    from cairnq_supervisor.commands.serving import with_client

    return with_client(options, lambda client: _get(client, options))


async def _get(client: CairnQ, options: argparse.Namespace) -> Answer:
    from cairnq_supervisor.commands.answer import Answer
    from cairnq_supervisor.commands.finding import missing
    from cairnq_supervisor.commands.shown import task_json, task_record

    task = await (client.get(options.id) if options.key is None else client.get_by_key(options.key))
    if task is None:
        raise missing(options)
    return Answer(task_json(task), [task_record(task)])
