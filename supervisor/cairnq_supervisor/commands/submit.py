"""`cairnq submit`: insert one task, and wait for its end where asked."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from cairnq_supervisor.commands.shape import CONFLICTS, Commands, command, database_options, milliseconds, whole
from cairnq_supervisor.pure.exits import Exit

if TYPE_CHECKING:
    from cairnq.client import CairnQ
    from cairnq.pure.models import Task
    from cairnq_supervisor.commands.answer import Answer

_EXAMPLE = """\
  cairnq submit send_mail '{"to": "ann@example.com"}' --queue mail
  cairnq submit report --key report-2026-12 --conflict reject --delay 10m
  cairnq submit resize - --wait --timeout 1m < picture.json
"""


def add(commands: Commands) -> None:
    parser = command(
        commands,
        "submit",
        _act,
        does="Submit a task. With --wait: its result, and exit code 1 if it failed, 75 if it took too long.",
        example=_EXAMPLE,
    )
    parser.add_argument("name", metavar="NAME", help="the handler to run")
    parser.add_argument("payload", nargs="?", metavar="JSON", help="what it gets; - reads standard input")
    parser.add_argument("--queue", default="default", metavar="QUEUE")
    parser.add_argument("--key", help="a business name under which one current task stands")
    parser.add_argument("--conflict", choices=CONFLICTS, default="reuse", help="when a task stands under the key")
    parser.add_argument("--max-attempts", type=whole(1), default=3, metavar="N")
    parser.add_argument("--priority", type=whole(-(2**31) + 1), default=0, metavar="N", help="higher runs first")
    parser.add_argument("--delay", type=milliseconds, default=0, metavar="DURATION", help="not before: 90s, 10m, 1d")
    parser.add_argument("--correlation", metavar="ID", help="a name that related tasks share")
    parser.add_argument("--metadata", metavar="JSON", help="an object")
    parser.add_argument("--wait", action="store_true", help="until it has ended")
    parser.add_argument("--timeout", type=milliseconds, default=30_000, metavar="DURATION", help="of --wait (30s)")
    database_options(parser)


def _act(options: argparse.Namespace) -> int:
    from cairnq_supervisor.commands.answer import complain
    from cairnq_supervisor.commands.serving import with_client

    try:
        payload = _json(sys.stdin.read() if options.payload == "-" else options.payload, "the payload")
        metadata = _json(options.metadata, "--metadata")
    except ValueError as error:
        complain(str(error))
        return Exit.USAGE
    return with_client(options, lambda client: _submit(client, options, payload, metadata))


def _json(text: str | None, what: str) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} is not JSON: {error} (a bare word needs its quotes: '\"word\"')") from error


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON value")


async def _submit(client: CairnQ, options: argparse.Namespace, payload: Any, metadata: Any) -> Answer:
    task = await client.submit(
        options.name,
        payload,
        key=options.key,
        queue=options.queue,
        conflict=options.conflict,
        max_attempts=options.max_attempts,
        priority=options.priority,
        metadata=metadata,
        correlation_id=options.correlation,
        delay_ms=options.delay,
    )
    if options.wait:
        return _ended(await client.wait(task.id, timeout_ms=options.timeout))
    from cairnq_supervisor.commands.answer import Answer
    from cairnq_supervisor.commands.shown import task_json

    return Answer(task_json(task), [f"{task.id} {task.status} in {task.queue}"])


def _ended(task: Task) -> Answer:
    from cairnq_supervisor.commands.answer import Answer
    from cairnq_supervisor.commands.shown import error_line, task_json
    from cairnq_supervisor.pure.printable import compact_json

    if task.succeeded:
        return Answer(task_json(task), [compact_json(task.result)])
    why = "" if task.error is None else f": {error_line(task.error)}"
    return Answer(task_json(task), [f"{task.id} {task.status}{why}"], Exit.FAILED)
