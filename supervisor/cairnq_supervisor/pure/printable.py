"""Text of strangers made fit for a terminal, a log, a title and a metric: what could steer one becomes visible.

Every text that leaves this program for people goes through here. Widths are those of the screen.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Any

ELLIPSIS = "…"
CONTINUED = "  "


def printable(text: str) -> str:
    """The same text with everything that could steer a terminal (escapes, newlines, direction marks) spelt out."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _spelt(char) for char in text)


def printable_lines(text: str) -> str:
    """As `printable`, but line ends stay. What follows the first line is indented: it cannot pass for another one."""
    first, *more = text.split("\n")
    return "\n".join([printable(first), *(CONTINUED + printable(line) for line in more)])


def compact_json(value: Any) -> str:
    """One line for a person: letters of every language as they are, nothing that a terminal would obey."""
    return printable(json.dumps(value, ensure_ascii=False, default=str))


def machine_json(value: Any) -> str:
    """For a program, and safe on a terminal too: ASCII alone. DEL is the one control that `json` leaves raw."""
    return _undeletable(json.dumps(value, ensure_ascii=True, indent=2))


def json_line(value: Any) -> str:
    """As `machine_json`, on one line. What JSON cannot hold becomes its text."""
    return _undeletable(json.dumps(value, ensure_ascii=True, default=str))


def width(text: str) -> int:
    """Columns of a terminal that a printable text takes."""
    return len(text) if text.isascii() else sum(_columns(char) for char in text)


def clip(text: str, columns: int) -> str:
    """At most so many columns; what is cut off leaves an ellipsis."""
    if width(text) <= columns:
        return text
    if columns <= 0:
        return ""
    kept, used = [], 0
    for char in text:
        used += _columns(char)
        if used > columns - 1:
            break
        kept.append(char)
    return "".join(kept) + ELLIPSIS


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """Filled up with blanks, on the left where `right` aligned."""
    blanks = " " * (columns - width(text))
    return blanks + text if right else text + blanks


def _undeletable(text: str) -> str:
    return text.replace("\x7f", "\\u007f")


def _spelt(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
