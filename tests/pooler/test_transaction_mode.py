"""Behind PgBouncer in transaction mode: each transaction may meet another session, and leaves nothing in it.

The suites of tests/store and tests/worker run this way as well, under the id `pooled`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import psycopg
import pytest

from cairnq import CairnQ, PostgresStore, TaskContext, Worker
from tests.support.pooler import SESSIONS, Pooler
from tests.support.tasks import ERROR, LEASE_MS, ME


@pytest.fixture
async def pooled(pooler: Pooler, database: str) -> AsyncIterator[PostgresStore]:
    """A store whose statements go through the pooler, and its LISTEN around it."""
    store = PostgresStore(pooler.dsn(database), listen_database=database)
    await store.connect()
    yield store
    await store.close()


async def in_every_session(dsn: str, statement: str) -> list[list[tuple[Any, ...]]]:
    """What `statement` gives in each of the pooler's sessions: as many transactions at once as it has."""
    async with AsyncExitStack() as stack:
        rows, sessions = [], set()
        for _ in range(SESSIONS):
            connecting = psycopg.AsyncConnection.connect(dsn, prepare_threshold=None)
            connection = await stack.enter_async_context(await connecting)
            sessions |= set(await (await connection.execute("select pg_backend_pid()")).fetchall())
            rows.append(await (await connection.execute(statement.encode())).fetchall())
        assert len(sessions) == SESSIONS
        return rows


async def work(store: PostgresStore) -> None:
    """Each kind of statement of a worker and its clients, more than six times (psycopg prepares at the sixth)."""
    for number in range(8):
        await store.submit("x", number, key=f"key {number}")
        await store.submit_many([{"name": "x"}, {"name": "x", "key": "many"}])
        tasks = await store.claim(["default"], ME, LEASE_MS, limit=3, names=["x", "y"])
        assert len(tasks) >= 2
        await store.heartbeat_batch([task.id for task in tasks], ME, LEASE_MS)
        await store.progress(tasks[0].id, ME, 0.5)
        await store.fail(tasks[0].id, ME, ERROR, retryable=False)
        for task in tasks[1:]:
            await store.complete(task.id, ME, number)
        await store.list(queue="default")
        await store.stats()
        await store.recover()
        await store.purge(limit=1)


# --- what we leave behind -----------------------------------------------------------------------------------


async def test_nothing_is_prepared_in_any_session(pooled: PostgresStore, pooler: Pooler, database: str) -> None:
    await work(pooled)
    prepared = await in_every_session(pooler.dsn(database), "select statement from pg_prepared_statements")
    assert prepared == [[]] * SESSIONS


async def test_nothing_is_set_in_any_session(pooled: PostgresStore, pooler: Pooler, database: str) -> None:
    """PgBouncer itself carries the parameters that it tracks from client to client; no other may be set."""
    await work(pooled)
    tracked = "('application_name', 'client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings')"
    settings = await in_every_session(
        pooler.dsn(database), f"select name from pg_settings where source = 'session' and name not in {tracked}"
    )
    assert settings == [[]] * SESSIONS


@pytest.mark.parametrize(
    "left",
    [
        "select * from pg_locks where locktype = 'advisory'",
        "select pg_listening_channels()",
        "select * from pg_class where relpersistence = 't'",
        "select * from pg_cursors where is_holdable",
    ],
)
async def test_nothing_else_stays_in_any_session(
    pooled: PostgresStore, pooler: Pooler, database: str, left: str
) -> None:
    await work(pooled)
    assert await in_every_session(pooler.dsn(database), left) == [[]] * SESSIONS


async def test_two_schemas_share_the_sessions_and_never_cross(pooler: Pooler, database: str) -> None:
    stores = {
        schema: PostgresStore(pooler.dsn(database), schema=schema, listen_database=database)
        for schema in ("one", "Two", "public")
    }
    for store in stores.values():
        await store.connect()
    await asyncio.gather(*(work(store) for store in stores.values()))
    for schema, store in stores.items():
        await store.submit("whose", schema, queue="whose")
        assert [task.payload for task in await store.list(queue="whose")] == [schema]
        await store.close()


async def test_more_callers_than_sessions_all_get_their_turn(pooled: PostgresStore) -> None:
    tasks = await asyncio.gather(*(pooled.submit("x", number, key=f"k{number % 10}") for number in range(60)))
    assert len({task.id for task in tasks}) == 10


# --- wake-ups -----------------------------------------------------------------------------------------------


async def echo(ctx: TaskContext, payload: Any) -> Any:
    return payload


async def test_a_direct_dsn_for_listen_proves_that_it_delivers(pooled: PostgresStore) -> None:
    delivers: asyncio.Queue[bool] = asyncio.Queue()
    stop = await pooled.listen(["cairnq_queued"], lambda _channel, _payload: None, delivers.put_nowait)
    async with asyncio.timeout(60):
        assert await delivers.get()
    await stop()


async def test_a_worker_is_woken_around_the_pooler(pooled: PostgresStore, pooler: Pooler, database: str) -> None:
    """With a poll of a minute, only a notification can be this quick."""
    worker = Worker.postgres(pooler.dsn(database), listen_database=database, poll_interval_ms=60_000, concurrency=4)
    worker.register("x", echo)
    async with worker.background(), CairnQ.postgres(pooler.dsn(database), listen_database=database) as client:
        assert await client.call("x", "first", timeout_ms=60_000) == "first"
        results = await asyncio.gather(*(client.call("x", number, timeout_ms=20_000) for number in range(40)))
    assert results == list(range(40))


async def test_polling_does_where_listen_is_behind_the_pooler_as_well(pooler: Pooler, database: str) -> None:
    """The self-test finds that nothing arrives; tasks are found and waited for all the same."""
    through = pooler.dsn(database)
    worker = Worker.postgres(through, listen_database=through, poll_interval_ms=50)
    worker.register("x", echo)
    async with worker.background(), CairnQ.postgres(through, listen_database=through) as client:
        assert [await client.call("x", number) for number in range(5)] == list(range(5))
