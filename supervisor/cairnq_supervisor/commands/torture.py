"""`cairnq torture`: fleets of real processes under a schedule of faults, and an audit of what they made of it."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from cairnq_supervisor.commands.shape import Commands, command, whole

_DOES = (
    "Hurt a fleet of its own on your database, and audit it. Real supervisors run tasks while processes are killed and "
    "stopped, connections cut and rows locked, by a schedule drawn from a seed; then every promise is held against the "
    "tables. Your own tasks are not touched: PostgreSQL gets a schema of the run's own, SQLite a file beside the given "
    "one, and both are removed at the end. It takes all the processors of this host while it runs, and on PostgreSQL "
    "about 30 connections. Exit code 1: a promise was broken."
)
_EXAMPLE = """\
  cairnq torture --database postgresql://me@db.example/shop_test --seconds 120
  cairnq torture -c cairnq.toml --seed 1234 --json > audit.json
  cairnq torture --database sqlite:///try.db --seconds 30
"""


def add(commands: Commands) -> None:
    parser = command(commands, "torture", _act, does=_DOES, example=_EXAMPLE)
    parser.add_argument("--seconds", type=whole(1, 86_400), default=120, metavar="N", help="of faults (120)")
    parser.add_argument("--seed", type=whole(0, 2**63 - 1), metavar="N", help="repeat the schedule of that run")
    parser.add_argument(
        "--patience", type=whole(1, 86_400), default=120, metavar="N", help="seconds to finish in when faults are over"
    )
    parser.add_argument(
        "--restart",
        type=_words,
        default=[],
        metavar="COMMAND",
        help="restarts the server, now and then: 'pg_ctl restart -D /var/lib/pg -m immediate'",
    )
    parser.add_argument("--keep", action="store_true", help="leave tables, logs and configurations for a look")
    group = parser.add_argument_group("database (or CAIRNQ_DSN, dsn_file, the configuration, DATABASE_URL)")
    group.add_argument("-c", "--config", type=Path, metavar="FILE", help="only its database is used")
    group.add_argument("--database", metavar="URL", help="without a password, which `ps` would show: use CAIRNQ_DSN")
    parser.set_defaults(schema=None)


def _words(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a command: {error}") from error
    if not words:
        raise argparse.ArgumentTypeError("an empty command")
    return words


def _act(options: argparse.Namespace) -> int:
    from cairnq_supervisor.commands.serving import answered
    from cairnq_supervisor.commands.torturing import run

    return answered(options, lambda: run(options))
