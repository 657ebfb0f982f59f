"""Reads SQL as far as needed: takes a text of several statements apart, and tells which of them only read."""

from __future__ import annotations

import re
import sqlite3
from functools import lru_cache

_OPAQUE = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `(?:[^`]|``)*` | \[[^\]]*\] | --[^\n]* | /\*.*?(?:\*/|\Z)""",
    re.DOTALL | re.VERBOSE,
)
"""Literals, quoted names and comments: what stands in them is no SQL."""

_WORD = re.compile(r"[()]|\w+")
_READS = frozenset({"select", "values"})
_VERBS = _READS | {"insert", "replace", "update", "delete"}


@lru_cache(maxsize=1024)
def reads_only(text: str) -> bool:
    """Whether one statement is a query, for which no lock is needed. A pragma, whatever it does, is none.

    The first word decides, and after `with` the first verb outside parentheses: in them, SQLite lets nothing write.
    """
    depth, is_first = 0, True
    for word in _WORD.findall(_OPAQUE.sub(" ", text).lower()):
        if word in "()":
            depth += 1 if word == "(" else -1
        elif depth == 0 and word in _VERBS:
            return word in _READS
        elif is_first and word != "with":
            return False
        is_first = False
    return False


@lru_cache(maxsize=64)
def split_script(text: str) -> tuple[str, ...]:
    """The statements of a text, in order; comments between them are left out with the empty statements they make."""
    statements: list[str] = []
    pending = ""
    for part in text.split(";"):
        pending += part + ";"
        if sqlite3.complete_statement(pending):
            if _holds_sql(pending):
                statements.append(pending)
            pending = ""
    if _holds_sql(pending):
        statements.append(pending.removesuffix(";"))
    return tuple(statements)


def _holds_sql(text: str) -> bool:
    lines = (line.strip() for line in text.splitlines())
    return any(line and line != ";" and not line.startswith("--") for line in lines)
