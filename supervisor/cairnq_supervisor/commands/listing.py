"""`cairnq list`: tasks that match, newest first."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cairnq_supervisor.commands.shape import STATUSES, Commands, command, database_options, whole

if TYPE_CHECKING:
    from cairnq.client import CairnQ
    from cairnq_supervisor.commands.answer import Answer


def add(commands: Commands) -> None:
    example = (
        "  cairnq list --status failed --queue mail\n  cairnq list --root task_01KB2M4Z8Q7W3V6T5R9P1N0JHX --json\n"
    )
    parser = command(commands, "list", _act, does="List tasks, newest first.", example=example)
    parser.add_argument("--status", choices=STATUSES)
    parser.add_argument("--queue", metavar="QUEUE")
    parser.add_argument("--name", metavar="NAME")
    parser.add_argument("--root", metavar="ID", help="a task and all that descend from it")
    parser.add_argument("--correlation", metavar="ID")
    parser.add_argument("--limit", type=whole(1), default=20, metavar="N", help="at most so many (20)")
    parser.add_argument("--offset", type=whole(0), default=0, metavar="N", help="leave out the newest N")
    database_options(parser)


def _act(options: argparse.Namespace) -> int:
    from cairnq_supervisor.commands.serving import with_client

    return with_client(options, lambda client: _list(client, options))


async def _list(client: CairnQ, options: argparse.Namespace) -> Answer:
    from cairnq_supervisor.commands.answer import Answer, Block
    from cairnq_supervisor.commands.shown import task_json, task_table

    tasks = await client.list(
        status=options.status,
        queue=options.queue,
        name=options.name,
        root_id=options.root,
        correlation_id=options.correlation,
        limit=options.limit,
        offset=options.offset,
    )
    given = [title for title in ("status", "queue", "name") if getattr(options, title) is not None]
    shown: list[Block] = [task_table(tasks, without=given)] if tasks else ["no task matches"]
    if len(tasks) == options.limit:
        shown.append(f"the newest {len(tasks)}; more with --limit or --offset {options.offset + len(tasks)}")
    return Answer([task_json(task) for task in tasks], shown)
