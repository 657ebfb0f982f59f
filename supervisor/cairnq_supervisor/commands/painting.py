"""The same blocks in colour. Only this file needs rich; without it the plain text of `answer` is printed."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from cairnq_supervisor.commands.answer import Block, Note, Record, below
from cairnq_supervisor.pure import tabular
from cairnq_supervisor.pure.printable import printable_lines
from cairnq_supervisor.pure.tabular import Table

_STYLES = {
    "queued": "yellow",
    "running": "cyan",
    "succeeded": "green",
    "failed": "bold red",
    "canceled": "magenta",
    "ok": "green",
    "warning": "yellow",
    "fault": "bold red",
}


def paint(blocks: Sequence[Block], limit: int) -> None:
    """To standard output. Cells go in as `Text`, so that nothing in them is read as markup."""
    console = Console(width=limit, highlight=False)
    for block in blocks:
        match block:
            case str():
                console.print(Text(printable_lines(block)))
            case Record(pairs=pairs):
                _paint_record(console, pairs, limit)
            case Note():
                _paint_note(console, block, limit)
            case Table():
                console.print(_painted(block, limit))


def _painted(table: Table, limit: int) -> RichTable:
    fitted = tabular.fit(table, limit, gap=2)
    painted = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for column, width in zip(fitted.columns, fitted.widths, strict=True):
        painted.add_column(
            Text(column.title), justify="right" if column.right else "left", width=width, no_wrap=True, overflow="crop"
        )
    for row in fitted.rows:
        painted.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    return painted


def _paint_note(console: Console, note: Note, limit: int) -> None:
    """The first word of the lead is what it says of the thing."""
    verdict = note.lead.partition(" ")[0]
    for index, line in enumerate(tabular.hanging(note.lead, note.text, limit) + below(note.more)):
        text = Text(line)
        if index == 0:
            text.stylize(_STYLES.get(verdict, ""), 0, len(verdict))
        console.print(text, soft_wrap=True)


def _paint_record(console: Console, pairs: Sequence[tuple[str, str]], limit: int) -> None:
    for (name, value), line in zip(pairs, tabular.record_lines(pairs, limit), strict=True):
        text = Text(line, style=_STYLES.get(value, ""), no_wrap=True, overflow="crop")
        text.stylize("bold", 0, len(name))
        console.print(text)
