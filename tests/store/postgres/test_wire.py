"""The wire: table and column names, types, nulls, defaults and constraints that every SDK of protocol 1 relies on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from cairnq.store.installing import OTHER_SDKS_LEDGER

Column = tuple[str, str, bool, str | None]

TASKS: list[Column] = [  # name, type, may be null, default
    ("id", "text", False, None),
    ("name", "text", False, None),
    ("queue", "text", False, "'default'::text"),
    ("status", "text", False, None),
    ("payload", "jsonb", False, None),
    ("result", "jsonb", True, None),
    ("error", "jsonb", True, None),
    ("metadata", "jsonb", False, "'{}'::jsonb"),
    ("progress", "double precision", True, None),
    ("message", "text", True, None),
    ("attempt", "integer", False, "0"),
    ("max_attempts", "integer", False, "3"),
    ("priority", "integer", False, "0"),
    ("worker_id", "text", True, None),
    ("lease_until_ms", "bigint", True, None),
    ("run_at_ms", "bigint", False, None),
    ("cancel_requested_at_ms", "bigint", True, None),
    ("parent_id", "text", True, None),
    ("root_id", "text", True, None),
    ("correlation_id", "text", True, None),
    ("created_at_ms", "bigint", False, None),
    ("updated_at_ms", "bigint", False, None),
    ("completed_at_ms", "bigint", True, None),
]
KEYS: list[Column] = [
    ("key", "text", False, None),
    ("task_id", "text", False, None),
    ("created_at_ms", "bigint", False, None),
    ("updated_at_ms", "bigint", False, None),
]
META: list[Column] = [("key", "text", False, None), ("value", "text", False, None)]
LEDGER: list[Column] = [("name", "text", False, None), ("applied_at_ms", "bigint", False, None)]

_COLUMNS = """
select a.attname, format_type(a.atttypid, a.atttypmod), not a.attnotnull, pg_get_expr(d.adbin, d.adrelid)
from pg_attribute a
left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where a.attrelid = %s::regclass and a.attnum > 0 and not a.attisdropped
order by a.attnum
"""

_CONSTRAINTS = """
select pg_get_constraintdef(c.oid) from pg_constraint c
where c.conrelid = %s::regclass and c.contype in ('p', 'f', 'c', 'u') order by 1
"""


@pytest.fixture
def connection(database: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize(
    ("table", "columns"),
    [("cairnq_tasks", TASKS), ("cairnq_task_keys", KEYS), ("cairnq_meta", META), ("cairnq_migrations", LEDGER)],
)
def test_a_table_has_the_protocols_columns(
    connection: psycopg.Connection[Any], table: str, columns: list[Column]
) -> None:
    assert connection.execute(_COLUMNS, [table]).fetchall() == columns


def test_keys_follow_their_tasks(connection: psycopg.Connection[Any]) -> None:
    assert [row[0] for row in connection.execute(_CONSTRAINTS, ["cairnq_task_keys"])] == [
        "FOREIGN KEY (task_id) REFERENCES cairnq_tasks(id) ON DELETE CASCADE",
        "PRIMARY KEY (key)",
    ]


def test_no_status_but_the_five(connection: psycopg.Connection[Any]) -> None:
    insert = (
        "insert into cairnq_tasks (id, name, status, payload, run_at_ms, created_at_ms, updated_at_ms)"
        " values (%s, 'x', %s, '1', 0, 0, 0)"
    )
    for status in ("queued", "running", "succeeded", "failed", "canceled"):
        connection.execute(insert, [status, status])
    for status in ("done", "Queued", "", "cancelled"):
        with pytest.raises(psycopg.errors.CheckViolation):
            connection.execute(insert, [status, status])


def test_the_installation_says_which_protocol_it_speaks(connection: psycopg.Connection[Any]) -> None:
    rows = connection.execute("select key, value from cairnq_meta order by key").fetchall()
    assert rows == [("protocol_version", "1"), ("schema_version", "10")]


def test_the_ledger_keeps_other_sdks_from_migrating(connection: psycopg.Connection[Any]) -> None:
    names = [row[0] for row in connection.execute("select name from cairnq_migrations")]
    assert set(OTHER_SDKS_LEDGER) <= set(names)
    assert OTHER_SDKS_LEDGER[0] == "0001_init.sql"
    assert OTHER_SDKS_LEDGER[-1] == "0010_drop_status_index.sql"


def test_the_trigger_carries_the_name_that_theirs_would_replace(connection: psycopg.Connection[Any]) -> None:
    names = connection.execute(
        "select tgname from pg_trigger where tgrelid = 'cairnq_tasks'::regclass and not tgisinternal"
    ).fetchall()
    assert names == [("cairnq_tasks_notify",)]


def test_no_index_of_ours_has_a_name_of_theirs(connection: psycopg.Connection[Any]) -> None:
    names = {row[0] for row in connection.execute("select indexname from pg_indexes where tablename like 'cairnq%'")}
    ours = {name for name in names if not name.endswith("_pkey")}
    assert ours
    assert all(name.startswith("cairnq_lean_") for name in ours)
