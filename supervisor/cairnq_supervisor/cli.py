"""The command line. Imports little: signals are held back from its first line on, before anything heavy is loaded."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import NoReturn

from cairnq_supervisor import commands as other_commands
from cairnq_supervisor.commands.shape import wrapped
from cairnq_supervisor.pure.exits import Exit
from cairnq_supervisor.pure.printable import printable_lines
from cairnq_supervisor.pure.settings import QueueChoice, parse_choice
from cairnq_supervisor.system import signals

_DISTRIBUTION = "cairnq-supervisor"

_RUN_HELP = """\
Check the database once, fork the keeper and the configured workers, and look after them until SIGTERM.

The database comes from --database, CAIRNQ_DSN, dsn_file, the systemd credential "dsn", the configuration's `database`,
or DATABASE_URL, whichever is found first; else it is the SQLite file cairnq.db beside the configuration.
"""

_RUN_EXAMPLE = """\
example:
  export CAIRNQ_DSN=postgresql://me:secret@db.example/shop
  cairnq run -c cairnq.toml
  cairnq run --app shop.tasks:registry --queue default=2:16 --queue gpu=1:1

exit codes:
  0 drained   64 usage   69 no worker could start   70 bug
  75 database unreachable   76 schema or protocol version not ours
  78 configuration
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The entry point of `cairnq`; returns the exit code."""
    signals.block()
    given, parser = sys.argv[1:] if arguments is None else arguments, _parser()
    if not given:
        parser.print_help(sys.stderr)
        return Exit.USAGE
    options = parser.parse_args(given)
    if other_commands.chosen(options):
        signals.unblock()
        return int(options.act(options))
    signals.end_at_once(lambda _number: os._exit(Exit.OK))
    # Only now, so that the other commands stay light and a signal during the imports is answered.
    from cairnq_supervisor.run import run

    code = run(options)
    signals.block()  # the interpreter is about to drop its handlers, and a late signal would be how we ended
    return code


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="cairnq", description="A durable task queue in a database, and its workers on this host.")
    parser.add_argument("--version", action="version", version=f"cairnq {_version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, title="commands")
    run = commands.add_parser(
        "run",
        help="run this host's workers under the supervisor",
        description=wrapped(_RUN_HELP),
        epilog=_RUN_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument("-c", "--config", type=Path, metavar="FILE", help="default: cairnq.toml, or pyproject.toml, here")
    run.add_argument("--app", metavar="MODULE:ATTRIBUTE", help="the application's cairnq.Registry")
    run.add_argument("--database", metavar="URL", help="without a password, which `ps` would show: use CAIRNQ_DSN")
    run.add_argument(
        "--queue",
        action="append",
        default=[],
        type=_queue,
        dest="queues",
        metavar="NAME[=PROCESSES:CONCURRENCY]",
        help="run only these queues, in this size",
    )
    run.add_argument("--events-fd", type=int, metavar="N", help="write every event as a JSON line to descriptor N")
    run.add_argument("--log", choices=("text", "json"), help="how events look on standard error")
    other_commands.add_to(commands)
    return parser


class _Parser(argparse.ArgumentParser):
    """argparse, with the exit code of sysexits."""

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        if message:
            sys.stderr.write(printable_lines(message.rstrip("\n")) + "\n")
        sys.exit(Exit.USAGE if status else Exit.OK)


def _queue(argument: str) -> QueueChoice:
    try:
        return parse_choice(argument)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _version() -> str:
    try:
        return metadata.version(_DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "(not installed)"
