"""Tables and records laid out for a width. What does not fit is shortened first, then left out, never wrapped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cairnq_supervisor.pure.printable import clip, pad, printable, width

GAP = "  "
SHORTEST = 8
"""Columns below which a shortened cell says nothing any more: the column is left out instead."""


@dataclass(frozen=True, slots=True)
class Column:
    """`whole`: never shortened while another one can be. `right`: aligned so."""

    title: str
    right: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Fitted:
    """The columns that are shown, their widths, and the cells as they are shown, not yet padded."""

    columns: Sequence[Column]
    widths: Sequence[int]
    rows: Sequence[Sequence[str]]


def fit(table: Table, limit: int | None, *, gap: int = len(GAP)) -> Fitted:
    """Choose columns and widths for a line of `limit` columns (None: no limit)."""
    rows = [[printable(cell) for cell in row] for row in table.rows]
    shown = list(range(len(table.columns)))
    natural = [
        max([width(column.title), *(width(row[index]) for row in rows)]) for index, column in enumerate(table.columns)
    ]
    widths = dict(enumerate(natural))
    if limit is not None:
        shown, widths = _squeeze(table.columns, natural, limit, gap)
    return Fitted(
        [table.columns[index] for index in shown],
        [widths[index] for index in shown],
        [[clip(row[index], widths[index]) for index in shown] for row in rows],
    )


def lines(table: Table, limit: int | None) -> list[str]:
    """The table as plain text, headings first."""
    fitted = fit(table, limit)
    titles = [clip(column.title.upper(), room) for column, room in zip(fitted.columns, fitted.widths, strict=True)]
    return [_line(fitted, cells) for cells in [titles, *fitted.rows]]


def record_lines(pairs: Sequence[tuple[str, str]], limit: int | None) -> list[str]:
    """One fact a line, names aligned. Only the last resort, a narrow terminal, shortens a value."""
    margin = max((width(name) for name, _ in pairs), default=0)
    written = [f"{pad(name, margin)}{GAP}{printable(value)}" for name, value in pairs]
    return [clip(line, limit) if limit is not None else line for line in written]


def hanging(lead: str, text: str, limit: int | None) -> list[str]:
    """One line; on a screen of `limit` columns as many as it takes, all of the text below its beginning."""
    text, room = printable(text), 0 if limit is None else limit - width(lead)
    if room < SHORTEST:
        return [lead + text]
    lines: list[str] = []
    for word in text.split(" "):
        if lines and width(lines[-1]) + 1 + width(word) <= room:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return [(lead if index == 0 else " " * width(lead)) + line for index, line in enumerate(lines)]


def _squeeze(
    columns: Sequence[Column], natural: Sequence[int], limit: int, gap: int
) -> tuple[list[int], dict[int, int]]:
    """Shorten the widest; where that does not do, leave out the last column that may go; then cut what is left.

    The first one says what the row is about: it stays.
    """
    shown = list(range(len(columns)))
    while True:
        widths = {index: natural[index] for index in shown}
        excess = sum(widths.values()) + gap * (len(shown) - 1) - limit
        excess = _shorten(widths, [index for index in shown if not columns[index].whole], excess, SHORTEST)
        if excess <= 0:
            return shown, widths
        spare = [index for index in shown[1:] if not columns[index].whole] or shown[1:]
        if not spare:
            _shorten(widths, shown, excess, 1)
            return shown, widths
        shown.remove(spare[-1])


def _shorten(widths: dict[int, int], which: Sequence[int], excess: int, least: int) -> int:
    """Take columns away from the widest of `which`, one after another; returns what is still too much."""
    while excess > 0:
        widest = max(which, key=lambda index: widths[index], default=None)
        if widest is None or widths[widest] <= least:
            return excess
        widths[widest] -= 1
        excess -= 1
    return excess


def _line(fitted: Fitted, cells: Sequence[str]) -> str:
    padded = [
        pad(cell, room, right=column.right)
        for cell, room, column in zip(cells, fitted.widths, fitted.columns, strict=True)
    ]
    return GAP.join(padded).rstrip()
