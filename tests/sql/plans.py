"""What PostgreSQL did for a statement: plans, asked for as a prepared statement meets them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from cairnq.db.statements import Statements, quote_literal

TASKS = "cairnq_tasks"
Connection = psycopg.Connection[tuple[Any, ...]]

_numbers = itertools.count(1)
_SCANS = ("Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Heap Scan", "Tid Scan", "Sample Scan")
_INDEX_NODES = ("Index Scan", "Index Only Scan", "Bitmap Index Scan")


@dataclass(frozen=True, slots=True)
class Plan:
    """One execution, as EXPLAIN (ANALYZE, BUFFERS) told it."""

    tree: dict[str, Any]
    triggers: tuple[str, ...] = ()

    @property
    def buffers(self) -> int:
        """Pages touched by the whole statement: found in memory or read."""
        return int(self.tree["Shared Hit Blocks"]) + int(self.tree["Shared Read Blocks"])

    @property
    def rows(self) -> int:
        return int(self.tree["Actual Rows"])

    def nodes(self) -> Iterator[dict[str, Any]]:
        return _walk(self.tree)

    def ran(self) -> Iterator[dict[str, Any]]:
        """The nodes that were executed at all."""
        return (node for node in self.nodes() if node["Actual Loops"])

    def scanned_whole(self) -> list[str]:
        """Tables that were read from end to end."""
        return [node["Relation Name"] for node in self.ran() if node["Node Type"] == "Seq Scan"]

    def indexes(self) -> set[str]:
        return {node["Index Name"] for node in self.ran() if node["Node Type"] in _INDEX_NODES}

    def sorts(self) -> list[int]:
        """Rows that went into each sort."""
        return [_rows(node["Plans"][0]) for node in self.ran() if node["Node Type"] in ("Sort", "Incremental Sort")]

    def thrown_away(self, relation: str = TASKS) -> int:
        """Rows of the table that were read only to fail a condition."""
        return sum(
            round(node.get("Rows Removed by Filter", 0) * node["Actual Loops"])
            + round(node.get("Rows Removed by Index Recheck", 0) * node["Actual Loops"])
            for node in self.ran()
            if node.get("Relation Name") == relation
        )

    def read(self, relation: str = TASKS) -> int:
        """Rows of the table that scans handed on or threw away."""
        handed_on = sum(
            _rows(node) for node in self.ran() if node["Node Type"] in _SCANS and node["Relation Name"] == relation
        )
        return handed_on + self.thrown_away(relation)

    def busiest(self) -> int:
        """Rows that the busiest step handled: a join of each with each shows here, though it reads no page."""
        removed = ("Rows Removed by Filter", "Rows Removed by Join Filter")
        return max(
            round((node["Actual Rows"] + sum(node.get(rows, 0) for rows in removed)) * node["Actual Loops"])
            for node in self.ran()
        )

    def __str__(self) -> str:
        return "\n".join(_render(self.tree, 0))


def _walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _walk(child)


def _rows(node: dict[str, Any]) -> int:
    rows: int = round(node["Actual Rows"] * node["Actual Loops"])
    return rows


def _render(node: dict[str, Any], depth: int) -> Iterator[str]:
    facts = [node["Node Type"], node.get("Index Name") or node.get("Relation Name") or node.get("CTE Name") or ""]
    facts += [f"rows={node['Actual Rows']}", f"loops={node['Actual Loops']}", f"estimated={node['Plan Rows']}"]
    facts += [f"buffers={node['Shared Hit Blocks'] + node['Shared Read Blocks']}"]
    facts += [f"removed={node['Rows Removed by Filter']}"] if node.get("Rows Removed by Filter") else []
    yield "  " * depth + " ".join(map(str, facts))
    for child in node.get("Plans", ()):
        yield from _render(child, depth + 1)


def connect(dsn: str, planning: str) -> Connection:
    """`ours`: with our own connections' settings; `auto`, `custom` or `generic`: with the server's, and such plans."""
    connection = psycopg.connect(dsn, autocommit=True)
    if planning == "ours":
        connection.execute(Statements("postgres", None).get("connection").text.encode())
    else:
        modes = {"auto": "auto", "custom": "force_custom_plan", "generic": "force_generic_plan"}
        connection.execute(f"set plan_cache_mode = {modes[planning]}".encode())
    return connection


class Prepared:
    """One variant of a statement, prepared on one connection."""

    def __init__(
        self,
        connection: Connection,
        name: str,
        conditions: Collection[str] = (),
        literals: Mapping[str, str] | None = None,
    ) -> None:
        quoted = {name: quote_literal(text) for name, text in (literals or {}).items()}
        statement = Statements("postgres", "public").get(name, conditions, quoted)
        self._connection = connection
        self._parameters = statement.parameters
        self._handle = f"plan_{next(_numbers)}"
        connection.execute(f"prepare {self._handle} as {statement.text}".encode())

    def explain(self, *, keep: bool = False, **values: Any) -> Plan:
        """Runs it with `values`, and undoes it unless it is to `keep`."""
        with self._connection.transaction(force_rollback=not keep):
            found = self._connection.execute(self._execute(values)).fetchone()
        assert found is not None
        document = found[0] if isinstance(found[0], list) else json.loads(found[0])
        return Plan(document[0]["Plan"], tuple(item["Trigger Name"] for item in document[0].get("Triggers", ())))

    def _execute(self, values: Mapping[str, Any]) -> sql.Composed:
        handle = sql.Identifier(self._handle)
        if not self._parameters:
            return sql.SQL("explain (analyze, buffers, timing off, format json) execute {}").format(handle)
        arguments = sql.SQL(", ").join([sql.Literal(values[str(name)]) for name in self._parameters])
        return sql.SQL("explain (analyze, buffers, timing off, format json) execute {} ({})").format(handle, arguments)
