"""`cairnq retry`: queue a failed or canceled task again."""

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
        "retry",
        _act,
        does="Queue a failed or canceled task again.",
        example="  cairnq retry task_01KB2M4Z8Q7W3V6T5R9P1N0JHX --reset-attempt\n",
    )
    task_or_key(parser)
    parser.add_argument("--reset-attempt", action="store_true", help="give it all its attempts again")
    database_options(parser)


def _act(options: argparse.Namespace) -> int:
    from cairnq_supervisor.commands.serving import with_client

    return with_client(options, lambda client: _retry(client, options))


async def _retry(client: CairnQ, options: argparse.Namespace) -> Answer:
    from cairnq_supervisor.commands.answer import Answer
    from cairnq_supervisor.commands.finding import not_done
    from cairnq_supervisor.commands.shown import task_json

    reset = options.reset_attempt
    if options.key is None:
        task = await client.retry(options.id, reset_attempt=reset)
    else:
        task = await client.retry_by_key(options.key, reset_attempt=reset)
    if task is None:
        raise await not_done(client, options, "retry")
    return Answer(task_json(task), [f"{task.id} queued again in {task.queue}"])
