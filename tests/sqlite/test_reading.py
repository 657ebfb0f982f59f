"""Which statements read only, as SQLite itself tells: a reader runs those, and the file's one writer all others."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cairnq import SqliteStore
from cairnq.db.sqlite.script import reads_only
from cairnq.db.statements import Statements, sql_root
from tests.sqlite.test_plans import VARIANTS, arranged

READ = {
    *("backlog", "callers_plans", "due", "ended", "get", "get_by_keys", "get_status", "get_status_by_key", "held_by"),
    *("lapsed", "list", "lock_keys", "meta", "names", "now", "outlook", "queue_depth", "queued_queues", "standing"),
    *("stats", "suspect_waits", "install/ledger_exists", "install/ledger_read", "install/statistics_exist"),
    *("install/tasks_analyzed", "install/tasks_exist"),
}
WRITE = {
    *("beat", "cancel", "claim", "claim_named", "claim_suspect", "fail_worker", "point_keys", "progress", "purge"),
    *("recover", "retry", "settle", "settle_forget", "submit", "submit_alike", "submit_one", "take_duty"),
    *("install/analyze", "install/ledger_add", "install/ledger_create"),
}
SETTINGS = {"connection", "data_version", "optimize", "patience", "restart_log", "install/journal"}  # pragmas
NEEDS_NO_TABLES = {"install/ledger_create"}  # where the ledger is there already, nothing is left to write
FILES = sorted(
    f"{folder}{entry.name.removesuffix('.sql')}"
    for folder in ("", "install/")
    for entry in (sql_root() / "sqlite" / folder).iterdir()
    if entry.name.endswith(".sql")
)


@pytest.fixture
async def reader(path: Path, store: SqliteStore, request: pytest.FixtureRequest) -> Any:
    """A connection that can write nothing: to a file with tables and statistics, or to one with neither."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("insert into cairnq_meta (key, value) values ('for', 'statistics')")
        connection.execute("analyze")
    if request.param in NEEDS_NO_TABLES:
        path = path.with_name("empty.db")
        path.touch()
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)) as connection:
        connection.execute("pragma query_only = on")
        yield connection


def test_every_file_is_said_to_read_or_to_write() -> None:
    assert sorted(READ | WRITE | SETTINGS) == FILES
    assert not READ & WRITE


@pytest.mark.parametrize(
    ("reader", "name"), [(name, name) for name in FILES if name not in SETTINGS], indirect=["reader"], ids=str
)
def test_a_statement_reads_only_where_sqlite_lets_it_run_on_a_reader(reader: sqlite3.Connection, name: str) -> None:
    for conditions in VARIANTS.get(name, [()]):
        text, values = arranged(name, conditions)
        try:
            reader.execute(text, values).fetchall()
        except sqlite3.OperationalError as error:
            assert error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_READONLY, error
            runs = False
        else:
            runs = True
        assert (reads_only(text), name in READ) == (runs, runs)


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_a_setting_is_no_read(name: str) -> None:
    assert not reads_only(Statements("sqlite", None).get(name, (), {"patience_ms": "1"}).text)


@pytest.fixture
def table() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute('create table t ("insert" int)')
        yield connection


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("select 'it''s; delete from t'", True),
        ("SELECT * FROM t", True),
        ("\n/* delete */ -- update\n\tselect 1", True),
        ("values (1)", True),
        ("with a (n) as (select 1) select replace(n, 1, 2) from a", True),
        ("with recursive a as (values (1)), [b )] as (select ')' from a) select 1 from a", True),
        ('with "update" as (select 1), `delete from` as (select 2) select * from "update"', True),
        ("with a as (select 1) insert into t select * from a", False),
        ("with a as (select ')') /* select */ UPDATE t set \"insert\" = 1", False),
        ("with a as (select 1) replace into t select * from a", False),
        ("with a as (select 1)\ndelete -- select\nfrom t", False),
        ("insert into t select 1", False),
        ("delete from t", False),
        ("pragma user_version = 1", False),
        ("create table u as select 1", False),
    ],
)
def test_the_first_verb_outside_parentheses_decides(table: sqlite3.Connection, text: str, reads: bool) -> None:
    assert reads_only(text) == reads
    table.execute("pragma query_only = on")
    if reads:
        table.execute(text)
    else:
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            table.execute(text)


async def test_a_look_out_goes_on_while_another_process_writes(store: SqliteStore, other: sqlite3.Connection) -> None:
    await store.submit("x")
    statements = store._sqlite.writer.statements
    other.execute("begin immediate")
    for expired in (False, True):
        assert (await store.outlook(["default"], 10, expired=expired)).due == {"default"}
    other.execute("rollback")
    assert store._sqlite.writer.statements == statements
