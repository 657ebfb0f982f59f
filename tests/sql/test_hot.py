"""Beats and progress stay HOT: they write no index, because none holds a column that they change."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from cairnq.db.statements import Statements
from cairnq.pure.models import Beat
from cairnq.store.postgres import PostgresStore

LEASES = 500
WORKER = "worker_01K0000000000000000000000A"  # a claim makes a row longer by this
COUNTERS = """
select pg_stat_get_xact_tuples_updated('cairnq_tasks'::regclass),
    pg_stat_get_xact_tuples_hot_updated('cairnq_tasks'::regclass)
"""
INDEXED = """
select distinct a.attname::text from pg_index i
join pg_attribute a on a.attrelid = i.indrelid
where i.indrelid = 'cairnq_tasks'::regclass
    and (a.attnum = any (i.indkey) or pg_get_indexdef(i.indexrelid) ~ ('WHERE.*\\m' || a.attname || '\\M'))
"""


@pytest.fixture(autouse=True)
def undisturbed(store: PostgresStore, database: str) -> None:
    """An autovacuum's own snapshot would keep old versions on their pages while it lasts."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("alter table cairnq_tasks set (autovacuum_enabled = false)")


async def claimed(store: PostgresStore, count: int) -> list[str]:
    """A table as it stands after a burst: every page full of rows that are running now."""
    payload = {"text": "x" * 100}
    await store.submit_many([{"name": "noop", "payload": payload}] * count)
    tasks = []
    while batch := await store.claim_many(["default"], WORKER, 600_000, 100, None):
        tasks += [item.task.id for item in batch]
    assert len(tasks) == count
    return tasks


async def counted(connection: psycopg.AsyncConnection[Any], name: str, **values: Any) -> tuple[int, int]:
    """Rows that the statement updated, and how many of these were HOT."""
    statement = Statements("postgres", "public").get(name)
    async with connection.transaction():
        before = await _counters(connection)
        await psycopg.AsyncRawCursor(connection).execute(statement.text.encode(), statement.arrange(values))
        after = await _counters(connection)
    return after[0] - before[0], after[1] - before[1]


async def _counters(connection: psycopg.AsyncConnection[Any]) -> tuple[int, int]:
    """What this session has updated and not yet reported to the shared statistics."""
    found = await (await connection.execute(COUNTERS)).fetchone()
    assert found is not None
    return int(found[0]), int(found[1])


@pytest.mark.statement("beat")
async def test_beat_of_five_hundred_leases_is_hot(store, database):
    """The first beat after a claim is the hardest: its pages hold the rows as they were before, too."""
    ids = await claimed(store, LEASES)
    values = {
        "ids": ids,
        "worker_ids": [WORKER] * LEASES,
        "attempts": [1] * LEASES,
        "leases_ms": [600_000] * LEASES,
    }
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
        for _ in range(5):
            assert await counted(connection, "beat", **values) == (LEASES, LEASES)


@pytest.mark.statement("progress")
async def test_progress_is_hot(store, database):
    ids = await claimed(store, LEASES)
    hot = 0
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
        for task_id in ids:
            values = {"id": task_id, "worker_id": WORKER, "attempt": 1, "progress": 0.5, "message": "half way"}
            updated, hot_now = await counted(connection, "progress", **values)
            assert updated == 1
            hot += hot_now
    assert hot == LEASES


async def test_no_index_holds_a_column_that_a_beat_or_progress_writes(store, database):
    async with await psycopg.AsyncConnection.connect(database) as connection:
        indexed = {row[0] for row in await (await connection.execute(INDEXED)).fetchall()}
    assert indexed
    assert indexed.isdisjoint({"lease_until_ms", "updated_at_ms", "progress", "message"})


async def test_beats_leave_the_indexes_as_they_are(store, database):
    ids = await claimed(store, LEASES)
    beats = [Beat(task_id, WORKER, 1, 600_000) for task_id in ids]
    assert None not in await store.beat_many(beats)
    async with await psycopg.AsyncConnection.connect(database) as connection:
        before = await _sizes(connection)
        for _ in range(20):
            assert None not in await store.beat_many(beats)
        assert await _sizes(connection) == before


async def _sizes(connection: psycopg.AsyncConnection[Any]) -> tuple[int, int]:
    """Bytes of the indexes, and of the table."""
    found = await (
        await connection.execute("select pg_indexes_size('cairnq_tasks'), pg_relation_size('cairnq_tasks')")
    ).fetchone()
    assert found is not None
    return int(found[0]), int(found[1])
