"""A cancellation that meets an answer of the server is raised, though before Python 3.12 the driver may swallow it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import psycopg
import pytest

from cairnq import CairnQ, PostgresStore
from tests.support.gates import soon
from tests.support.tasks import LEASE_MS, ME


async def submit(store: PostgresStore) -> object:
    return await store.submit("x")


async def submit_under_a_key(store: PostgresStore) -> object:
    return await store.submit("x", key="k", conflict="replace")


async def read(store: PostgresStore) -> object:
    return await store.get("task_none"), await store.list(limit=1)


async def claim(store: PostgresStore) -> object:
    async def plan(draw: Any) -> object:
        return await draw(["x"], 1), await draw(None, 1)

    return await store.claim_session(["default"], ME, LEASE_MS, None, plan)


async def connect_anew(store: PostgresStore) -> object:
    async with CairnQ.postgres(store._source) as client:  # type: ignore[arg-type]
        return await client.get_status("task_none")


class Swallowing:
    """From the next wait for the server on, as `asyncio.wait_for` of Python 3.11 does: cancelled, and not told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._wait = psycopg.AsyncConnection.wait
        self.after = -1
        self.swallowed = 0

        async def wait(connection: psycopg.AsyncConnection[Any], *given: Any) -> Any:
            return await self._wait_and_swallow(connection, *given)

        monkeypatch.setattr(psycopg.AsyncConnection, "wait", wait)

    async def _wait_and_swallow(self, connection: Any, *given: Any) -> Any:
        found = await self._wait(connection, *given)
        task = asyncio.current_task()
        if task is not None and task.get_name() == "cancelled":
            self.after -= 1
            if self.after == -1:
                self.swallowed += 1
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0)
        return found


@pytest.fixture
async def store(database: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(database, max_size=2)
    await store.connect()
    await store.submit("x", key="k")
    yield store
    await store.close()


@pytest.mark.parametrize("operation", [submit, submit_under_a_key, read, claim, connect_anew])
async def test_a_cancellation_is_raised_wherever_it_meets_an_answer(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, operation: Callable[[PostgresStore], Awaitable[object]]
) -> None:
    await operation(store)
    swallowing, answers = Swallowing(monkeypatch), 0
    while swallowing.swallowed == answers:
        swallowing.after = answers
        cancelled = asyncio.create_task(operation(store), name="cancelled")  # type: ignore[arg-type]
        await soon(asyncio.wait({cancelled}))
        assert cancelled.cancelled() == (swallowing.swallowed > answers), f"after answer {answers}"
        answers += 1
    assert answers > 1
    assert (await store.submit("x")).queued
    assert not await idle_in_transaction(store)


async def test_a_listener_ends_that_is_stopped_while_it_subscribes(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    swallowing = Swallowing(monkeypatch)
    swallowing.after = 1
    create_task = asyncio.create_task

    def named(work: Any, **options: Any) -> asyncio.Task[Any]:
        is_listener = options.get("name") == "cairnq listener"
        return create_task(work, name="cancelled" if is_listener else options.get("name"))

    monkeypatch.setattr(asyncio, "create_task", named)
    stop = await store.listen(["cairnq_queued", "cairnq_done"], lambda *_: None, lambda _: None)
    [listener] = store._listeners
    await soon(asyncio.wait({listener._task}))
    assert swallowing.swallowed == 1
    await soon(stop())


async def idle_in_transaction(store: PostgresStore) -> bool:
    async with store._autocommit() as bound:
        sql = "select 1 from pg_stat_activity where datname = current_database() and state = 'idle in transaction'"
        return bool(await bound.session.rows(sql, []))
