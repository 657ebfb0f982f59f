"""Takes a text of several SQL statements apart, for `sqlite3` runs one at a time."""

from __future__ import annotations

import sqlite3
from functools import lru_cache


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
