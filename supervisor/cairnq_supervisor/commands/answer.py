"""What a command has to say, and saying it: JSON for programs, fitted text for people, colour where rich is there."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TextIO, TypeAlias

from cairnq_supervisor.pure import tabular
from cairnq_supervisor.pure.exits import Exit
from cairnq_supervisor.pure.printable import CONTINUED, machine_json, printable, printable_lines
from cairnq_supervisor.pure.tabular import Table


@dataclass(frozen=True, slots=True)
class Record:
    """Facts about one thing, one a line."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence behind a lead. On a terminal it hangs there; `more` stands below."""

    lead: str
    text: str
    more: str = ""


Block: TypeAlias = str | Record | Note | Table


@dataclass(frozen=True, slots=True)
class Answer:
    """`data` is what `--json` prints; `shown` what people read. `code` is the exit code."""

    data: Any
    shown: Sequence[Block]
    code: int = Exit.OK


class Refusal(Exception):
    """The command cannot be done: an exit code, and a sentence for standard error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def say(answer: Answer, *, as_json: bool, stream: TextIO | None = None) -> None:
    """Print it. A terminal gets lines of its width; a pipe gets whole values."""
    stream = stream or sys.stdout
    if as_json:
        stream.write(machine_json(answer.data) + "\n")
        return
    terminal = stream.isatty()
    limit = shutil.get_terminal_size().columns if terminal else None
    if terminal and _paint(answer.shown, limit):
        return
    for block in answer.shown:
        for line in _plain(block, limit):
            stream.write(line + "\n")


def complain(message: str) -> None:
    sys.stderr.write(f"cairnq: {printable_lines(message)}\n")


def _plain(block: Block, limit: int | None) -> Sequence[str]:
    match block:
        case str():
            return [printable_lines(block)]
        case Record(pairs=pairs):
            return tabular.record_lines(pairs, limit)
        case Note(lead=lead, text=text, more=more):
            return tabular.hanging(lead, text, limit) + below(more)
        case Table():
            return tabular.lines(block, limit)


def below(more: str) -> list[str]:
    """Lines that belong to the one before."""
    return [CONTINUED + printable(line) for line in more.split("\n")] if more else []


def _paint(blocks: Sequence[Block], limit: int | None) -> bool:
    """With rich, if it is installed and colour is wanted; False: nothing was written."""
    if limit is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    try:
        from cairnq_supervisor.commands.painting import paint
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "rich":
            raise
        return False
    paint(blocks, limit)
    return True
