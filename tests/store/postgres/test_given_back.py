"""Whatever cancels a call, and whenever: its connection comes back to the pool."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from psycopg_pool import AsyncConnectionPool

from cairnq import CairnQ, PostgresStore
from tests.store.postgres.sessions import until_sessions
from tests.support.gates import soon

Operation = Callable[[PostgresStore], Awaitable[object]]


async def submit(store: PostgresStore) -> object:
    return await store.submit("x")


async def submit_under_a_key(store: PostgresStore) -> object:
    return await store.submit("x", key="k", conflict="replace")


async def read(store: PostgresStore) -> object:
    return await store.stats()


OPERATIONS = [submit, submit_under_a_key, read]


@pytest.fixture
async def store(database: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(database, max_size=1)
    await store.submit("x", key="k")
    yield store
    await store.close()


class Counter:
    """Where connections are given back: somebody else is being served, so whoever comes has to wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting: asyncio.Queue[None] = asyncio.Queue()
        self.served = asyncio.Event()
        putconn = AsyncConnectionPool.putconn

        async def wait_for_turn(pool: AsyncConnectionPool[Any], connection: Any) -> None:
            self.waiting.put_nowait(None)
            await self.served.wait()
            await putconn(pool, connection)

        monkeypatch.setattr(AsyncConnectionPool, "putconn", wait_for_turn)


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_a_call_cancelled_while_it_gives_back_gives_back(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, operation: Operation
) -> None:
    counter = Counter(monkeypatch)
    for _ in range(2):
        cancelled = asyncio.create_task(operation(store))  # type: ignore[arg-type]
        await soon(counter.waiting.get())
        cancelled.cancel()
        await soon(asyncio.wait({cancelled}))
        assert cancelled.cancelled()
        counter.served.set()
        await soon(until_all_are_back(store))
        counter.served.clear()
    counter.served.set()
    await soon(operation(store))


async def test_a_close_waits_for_what_is_given_back(
    store: PostgresStore, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = Counter(monkeypatch)
    cancelled = asyncio.create_task(store.submit("x"))
    await soon(counter.waiting.get())
    cancelled.cancel()
    closing = asyncio.create_task(store.close())
    await soon(asyncio.wait({cancelled}))
    counter.served.set()
    await soon(closing)
    await until_sessions(database, "true", lambda pids: not pids)


async def test_a_close_that_is_cancelled_closes(database: str) -> None:
    for turns in range(10):
        store = PostgresStore(database, max_size=2)
        await store.submit("x")
        closing = asyncio.create_task(store.close())
        for _ in range(turns):
            await asyncio.sleep(0)
        closing.cancel()
        await soon(asyncio.wait({closing}))
        await store.close()
        await until_sessions(database, "true", lambda pids: not pids)


@pytest.mark.parametrize("seed", range(3))
async def test_none_is_lost_where_many_are_cancelled_and_fight_for_few(database: str, seed: int) -> None:
    chance = random.Random(seed)
    async with CairnQ.postgres(database, max_size=3) as client:
        store: Any = client.store
        await store.submit("x")

        async def cancelled(number: int) -> None:
            calling = asyncio.create_task(chance.choice(OPERATIONS)(store), name=f"call {number}")  # type: ignore[arg-type]
            for _ in range(chance.randrange(100)):
                await asyncio.sleep(0)
            calling.cancel()
            await asyncio.wait({calling})

        for _ in range(8):
            await soon(asyncio.gather(*map(cancelled, range(100))))
        await soon(until_all_are_back(store))
        await soon(store.submit("x"))


async def until_all_are_back(store: Any) -> None:
    while True:
        stats = store._executor._pool.get_stats()
        if stats["pool_available"] == stats["pool_size"] > 0:
            return
        await asyncio.sleep(0)
