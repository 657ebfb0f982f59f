"""The connect-time checks of a file: migrations once, whoever made it; the protocol's version; statistics."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from cairnq import CairnQ, ProtocolVersionMismatch, SchemaMismatch, SqliteStore
from cairnq.db.sqlite import writer
from cairnq.store import installing
from tests.support.tasks import ask

COLD_START = """
import asyncio, sys
from cairnq import SqliteStore

async def main():
    store = SqliteStore(sys.argv[1])
    print("ready", flush=True)
    input()
    await store.connect()
    print((await store.submit("x")).id, flush=True)
    await store.close()

asyncio.run(main())
"""


async def connect(path: Path, *, migrate: bool = True) -> None:
    store = SqliteStore(path, migrate=migrate)
    try:
        await store.connect()
    finally:
        await store.close()


def objects(path: Path) -> list[tuple[object, ...]]:
    return ask(str(path), "select type, name, sql from sqlite_master order by 1, 2")


def ledger(path: Path) -> list[str]:
    return [str(name) for (name,) in ask(str(path), "select name from cairnq_migrations order by name")]


async def test_a_file_of_ours_carries_the_other_sdks_ledger(path: Path) -> None:
    await connect(path)
    theirs = [name for name in ledger(path) if not name.startswith("lean/")]
    assert theirs == [name for name in installing.OTHER_SDKS_LEDGER if name != "0003_notify.sql"]
    assert ask(str(path), "select key, value from cairnq_meta order by key") == [
        ("protocol_version", "1"),
        ("schema_version", "10"),
    ]
    assert ask(str(path), "pragma journal_mode") == [("wal",)]


async def test_a_current_file_is_not_touched(path: Path) -> None:
    await connect(path)
    before, content = objects(path), path.read_bytes()
    await connect(path)
    await connect(path, migrate=False)
    assert (objects(path), path.read_bytes()) == (before, content)


def test_cold_starts_at_once_install_once(path: Path, start_program) -> None:
    programs = [start_program(COLD_START, path) for _ in range(8)]
    for program in programs:
        assert program.read() == "ready"
    for program in programs:
        program.tell()
    submitted = [program.read() for program in programs]
    assert [program.end() for program in programs] == [0] * 8
    assert sorted(submitted) == [
        str(task_id) for (task_id,) in ask(str(path), "select id from cairnq_tasks order by id")
    ]


async def test_a_ledger_that_stops_too_early_is_refused_after_a_while(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "PART_WAY_PATIENCE_S", 0.2)
    await connect(path)
    ask(str(path), "select 1")
    with sqlite3.connect(path) as connection:
        connection.execute("delete from cairnq_migrations where name >= '0007' and name < '1' or name like 'lean/%'")
    connection.close()
    with pytest.raises(SchemaMismatch, match=r"stops at migration '0006_claim_name_index.sql'.*upgrade the SDK"):
        await connect(path)


async def test_a_ledger_that_is_being_completed_is_waited_for(path: Path) -> None:
    await connect(path)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("delete from cairnq_migrations where name = '0007_purge_status_index.sql'")
    connecting = asyncio.create_task(connect(path))
    done, _ = await asyncio.wait({connecting}, timeout=0.3)
    assert not done
    connection.execute("insert into cairnq_migrations values ('0007_purge_status_index.sql', 1)")
    await connecting
    connection.close()


async def test_without_the_right_to_migrate_what_is_missing_is_named(path: Path) -> None:
    await connect(path)
    with sqlite3.connect(path) as connection:
        connection.execute("delete from cairnq_migrations where name = 'lean/0002_lean_indexes.sql'")
    connection.close()
    with pytest.raises(SchemaMismatch, match=r"wants migrations \(lean/0002_lean_indexes.sql\) and migrate is off"):
        await connect(path, migrate=False)
    await connect(path)
    await connect(path, migrate=False)


async def test_another_major_version_of_the_protocol_is_refused(path: Path) -> None:
    await connect(path)
    with sqlite3.connect(path) as connection:
        connection.execute("update cairnq_meta set value = '2.1' where key = 'protocol_version'")
    connection.close()
    with pytest.raises(ProtocolVersionMismatch, match="'2.1'"):
        await connect(path)


async def test_tasks_that_were_never_analyzed_are_so_at_the_next_connect(path: Path) -> None:
    async with CairnQ.sqlite(path) as client:
        await client.submit_many([{"name": "x"}] * 10)
    await connect(path)
    analyzed = ask(str(path), "select distinct tbl from sqlite_stat1")
    assert analyzed == [("cairnq_tasks",)]


async def test_every_connection_is_durable_and_keeps_references(store: SqliteStore) -> None:
    await store.submit("x")
    await store.list()
    connections = {
        lane._name: lane._connection for lane in (store._sqlite.writer, *store._sqlite._readers) if lane._connection
    }
    assert {"writer", "reader 1"} <= set(connections)
    for name, connection in connections.items():
        ask_it = [connection.execute(f"pragma {pragma}").fetchone()[0] for pragma in ("synchronous", "foreign_keys")]
        assert ask_it == [2, 1], name
        assert connection.execute("pragma query_only").fetchone() == (int(name != "writer"),), name
    assert connections["writer"].execute("pragma busy_timeout").fetchone() == (0,)  # it waits by itself


async def test_statistics_are_refreshed_on_a_timer_by_who_writes(
    path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.submit_many([{"name": "x"}] * 10)
    assert ask(str(path), "select count(*) from sqlite_master where name = 'sqlite_stat1'") == [(0,)]
    await store.claim(["default"], "worker_me")  # the planner wants statistics of what it has planned for
    monkeypatch.setattr(writer, "OPTIMIZE_INTERVAL_S", 0)
    await store.submit("x")
    await store.submit("answered after the refresh that followed the one before")
    assert ask(str(path), "select distinct tbl from sqlite_stat1") == [("cairnq_tasks",)]
