"""Loads the SQL files and turns each into the text and parameter order that a driver takes.

A file holds one statement. Beside SQL it may hold `:name` (a parameter), `@name` (a fragment of
fragments/), `^name` (a literal or identifier, quoted by the caller), and lines that end with `-- if name`
(kept only in the variant that was asked for with that name) or `-- unless name` (left out of it). Table names
are qualified with the schema, so that no statement depends on a connection's search_path. For SQLite, which knows no
arrays, `:(name, name)` is one parameter of rows: several lists of one length side by side.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

_CONDITION = re.compile(r"--\s*(if|unless) (\w+)\s*$")
_COMMENT = re.compile(r"--.*$", re.MULTILINE)
_FRAGMENT = re.compile(r"@(\w+)")
_PLACE = re.compile(
    r"(?<!['\w.])(?P<table>cairnq_(?:tasks|task_keys|meta|migrations))\b(?!')"
    r"|\^(?P<literal>\w+)"
    r"|(?<!:):(?:(?P<parameter>[a-z_]+)|\((?P<columns>[a-z_,\s]+)\))"
)
_MARKS = {"postgres": "$", "sqlite": "?"}


def quote_identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class Statement:
    """`text` with placeholders numbered as the dialect writes them, and the names of the values in their order."""

    name: str
    text: str
    parameters: tuple[str | tuple[str, ...], ...]

    def arrange(self, values: Mapping[str, Any]) -> list[Any]:
        return [
            values[name] if isinstance(name, str) else list(zip(*(values[column] for column in name), strict=True))
            for name in self.parameters
        ]


def sql_root() -> Traversable:
    """The folder of SQL files, in a clone, an editable install and a wheel alike."""
    return files("cairnq") / "sql"


@cache
def _source(dialect: str, name: str) -> str:
    return (sql_root() / dialect / f"{name}.sql").read_text(encoding="utf-8")


@cache
def _fragment(dialect: str, name: str) -> str:
    text = _source(dialect, f"fragments/{name}").strip()
    return _FRAGMENT.sub(lambda match: _fragment(dialect, match.group(1)), text)


@cache
def migrations(dialect: str) -> tuple[tuple[str, str], ...]:
    """Name and text of each migration, in the order in which they apply."""
    folder = sql_root() / dialect / "migrations"
    found = sorted((entry.name, entry) for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple((name, entry.read_text(encoding="utf-8")) for name, entry in found)


class Statements:
    """The statements of one dialect, qualified with one schema; each variant is rendered once."""

    def __init__(self, dialect: str, schema: str | None) -> None:
        self._dialect = dialect
        self._prefix = "" if schema is None else quote_identifier(schema) + "."
        self._rendered: dict[tuple[str, frozenset[str], tuple[tuple[str, str], ...]], Statement] = {}

    def get(self, name: str, conditions: Collection[str] = (), literals: Mapping[str, str] | None = None) -> Statement:
        """The variant of statement `name` with the lines of `conditions`, `literals` written in (already quoted)."""
        key = (name, frozenset(conditions), tuple(sorted(literals.items())) if literals else ())
        statement = self._rendered.get(key)
        if statement is None:
            statement = self._rendered[key] = self._render(name, key[1], dict(literals or {}))
        return statement

    def _render(self, name: str, conditions: frozenset[str], literals: Mapping[str, str]) -> Statement:
        lines = []
        for line in _source(self._dialect, name).splitlines():
            condition = _CONDITION.search(line)
            if condition is None or (condition.group(1) == "if") == (condition.group(2) in conditions):
                lines.append(line)
        text = _COMMENT.sub("", "\n".join(lines))
        text = _FRAGMENT.sub(lambda match: _fragment(self._dialect, match.group(1)), text)
        parameters: list[str | tuple[str, ...]] = []

        def fill(place: re.Match[str]) -> str:
            """One pass for all three, so that what was written in is not taken for a place itself."""
            if table := place["table"]:
                return self._prefix + table
            if literal := place["literal"]:
                return literals[literal]
            named = place["parameter"] or tuple(column.strip() for column in place["columns"].split(","))
            if named not in parameters:
                parameters.append(named)
            return f"{_MARKS[self._dialect]}{parameters.index(named) + 1}"

        text = _PLACE.sub(fill, text)
        return Statement(
            name, "\n".join(line.rstrip() for line in text.splitlines() if line.strip()), tuple(parameters)
        )
