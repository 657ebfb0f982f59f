"""The shape that every command has: help with an example, `--json`, and where the database is."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from cairnq_supervisor.pure import quantities

if TYPE_CHECKING:
    Commands: TypeAlias = argparse._SubParsersAction[Any]  # noqa: SLF001 - argparse has no other name for it
else:
    Commands = object

STATUSES = ("queued", "running", "succeeded", "failed", "canceled")
FINISHED = ("succeeded", "failed", "canceled")
CONFLICTS = ("reuse", "reuse-succeeded", "reject", "replace")
"""As `cairnq` has them, whose import takes longer than `--help` should."""

Act: TypeAlias = Callable[[argparse.Namespace], int]


def command(commands: Commands, name: str, act: Act, *, does: str, example: str) -> argparse.ArgumentParser:
    """Add `cairnq NAME`. The first sentence of `does` stands in the list of commands."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=_lowered(does.partition(". ")[0].rstrip(".")),
        description=wrapped(does),
        epilog=f"example:\n{example.rstrip()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(act=act)
    parser.add_argument("--json", action="store_true", help="write JSON for a program")
    return parser


def wrapped(text: str) -> str:
    """Its paragraphs for the width of this terminal: examples must stay as they are, so argparse wraps nothing."""
    room = shutil.get_terminal_size().columns - 2
    return "\n\n".join(textwrap.fill(paragraph, room) for paragraph in text.split("\n\n"))


def database_options(parser: argparse.ArgumentParser) -> None:
    """As `cairnq run` takes them."""
    group = parser.add_argument_group("database (or CAIRNQ_DSN, dsn_file, the configuration, DATABASE_URL)")
    group.add_argument(
        "-c", "--config", type=Path, metavar="FILE", help="default: cairnq.toml, or pyproject.toml, here"
    )
    group.add_argument("--database", metavar="URL", help="without a password, which `ps` would show: use CAIRNQ_DSN")
    group.add_argument("--schema", metavar="NAME", help="where the tables are")


def task_or_key(parser: argparse.ArgumentParser) -> None:
    """`ID` or `--key KEY`, exactly one."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("id", nargs="?", metavar="ID", help="the task's id")
    which.add_argument("--key", metavar="KEY", help="the business name that the task stands under")


def milliseconds(text: str) -> int:
    """An argument such as "250ms", "30s", "7d"."""
    try:
        return round(quantities.duration(text) * 1000)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not {error}") from error


def whole(least: int, most: int = 2**31 - 1) -> Callable[[str], int]:
    """A whole number from `least` to `most`."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}")
        return value

    return parse


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
