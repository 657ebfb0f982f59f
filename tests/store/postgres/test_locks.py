"""A row whose lock somebody holds: a batch passes it by, and a write of one task waits, for a lock is no lost lease."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import psycopg
import pytest

from cairnq import Beat, DatabaseUnavailable, Held, LostLease, PostgresStore, Settlement, Standing, Task
from cairnq.db.fault import Fault
from cairnq.db.pool import PsycopgExecutor
from cairnq.db.sqlstate import classify
from tests.store.postgres.sessions import until_blocked
from tests.support.tasks import ERROR, LEASE_MS, ME, claimed


@pytest.fixture
async def somebody(store: PostgresStore, database: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """Another session, in a transaction of its own."""
    async with await psycopg.AsyncConnection.connect(database) as connection:
        yield connection
        await connection.rollback()


async def lock(somebody: psycopg.AsyncConnection[Any], task: Task) -> None:
    await somebody.execute("select from cairnq_tasks where id = %s for no key update", [task.id])


async def test_a_batch_passes_a_locked_row_by(store: PostgresStore, somebody: psycopg.AsyncConnection[Any]) -> None:
    locked, free = await claimed(store), await claimed(store)
    await lock(somebody, locked)
    beats = [Beat(task.id, ME, 1, LEASE_MS) for task in (locked, free)]
    assert await store.beat_many(beats) == [None, False]
    assert await store.standing_many(ME, [Held(locked.id, 1)]) == [Standing.HELD]
    settlements = [Settlement.complete(task.id, 1, None) for task in (locked, free)]
    assert await store.settle_many(ME, settlements) == [None, "succeeded"]
    assert await store.fail_worker(ME, ERROR) == []
    await somebody.rollback()
    assert await store.settle_many(ME, settlements) == ["succeeded", None]


async def test_a_claim_passes_a_locked_row_by(store: PostgresStore, somebody: psycopg.AsyncConnection[Any]) -> None:
    locked, free = [await store.submit("x") for _ in range(2)]
    await lock(somebody, locked)
    assert [task.id for task in await store.claim(["default"], ME, limit=2)] == [free.id]
    await somebody.rollback()
    assert [task.id for task in await store.claim(["default"], ME, limit=2)] == [locked.id]


async def test_a_purge_passes_a_locked_row_by(store: PostgresStore, somebody: psycopg.AsyncConnection[Any]) -> None:
    for _ in range(2):
        task = await claimed(store)
        await store.complete(task.id, ME, None)
    await lock(somebody, task)
    assert len(await store.purge()) == 1
    assert await store.get(task.id) is not None


async def complete_in(store: PostgresStore, task: Task) -> Task:
    async def write(session: Any) -> str:
        return "r"

    return (await store.complete_in(task.id, ME, write))[0]


async def heartbeat_batch(store: PostgresStore, task: Task) -> Task | None:
    beaten = await store.heartbeat_batch([task.id], ME, LEASE_MS)
    if not beaten:
        raise LostLease(task.id)
    return await store.get(task.id)


WRITES: dict[str, Callable[[PostgresStore, Task], Awaitable[Task | None]]] = {
    "complete": lambda store, task: store.complete(task.id, ME, "r"),
    "complete_in": complete_in,
    "succeed": lambda store, task: store.succeed(task.id, ME, "r"),
    "fail": lambda store, task: store.fail(task.id, ME, ERROR),
    "progress": lambda store, task: store.progress(task.id, ME, 0.5),
    "heartbeat": lambda store, task: store.heartbeat(task.id, ME),
    "heartbeat_batch": heartbeat_batch,
}


@pytest.mark.parametrize("write", WRITES)
async def test_a_write_of_one_task_waits_for_its_lock(
    store: PostgresStore, somebody: psycopg.AsyncConnection[Any], database: str, write: str
) -> None:
    """A beat, a cancel or a progress report that is under way at this moment takes no lease away."""
    task = await claimed(store)
    await lock(somebody, task)
    writing = asyncio.create_task(WRITES[write](store, task))
    await until_blocked(database, writing)
    await somebody.rollback()
    after = await writing
    assert after is not None
    assert after.updated_at_ms >= task.updated_at_ms


@pytest.mark.parametrize("write", WRITES)
async def test_a_write_that_waited_judges_the_row_as_it_is_then(
    store: PostgresStore, somebody: psycopg.AsyncConnection[Any], database: str, write: str
) -> None:
    task = await claimed(store)
    await somebody.execute(
        "update cairnq_tasks set status = 'failed', error = '{}', lease_until_ms = null, completed_at_ms = 1"
        " where id = %s",
        [task.id],
    )
    writing = asyncio.create_task(WRITES[write](store, task))
    await until_blocked(database, writing)
    await somebody.commit()
    with pytest.raises(LostLease):
        await writing


async def test_a_locked_row_does_not_hold_the_rest_of_a_heartbeat_batch(
    store: PostgresStore, somebody: psycopg.AsyncConnection[Any], database: str
) -> None:
    tasks = [await claimed(store) for _ in range(3)]
    await lock(somebody, tasks[1])
    beating = asyncio.create_task(store.heartbeat_batch([task.id for task in tasks], ME, 2 * LEASE_MS))
    await until_blocked(database, beating)
    others = [await store.get(task.id) for task in (tasks[0], tasks[2])]
    for other in others:
        assert other is not None
        assert (other.lease_until_ms or 0) > other.created_at_ms + LEASE_MS + 1000, "renewed already"
    await somebody.rollback()
    assert await beating == dict.fromkeys([task.id for task in tasks], False)


async def test_a_cancel_while_the_result_is_written_is_obeyed(
    store: PostgresStore, somebody: psycopg.AsyncConnection[Any], database: str
) -> None:
    task = await claimed(store)
    await somebody.execute("update cairnq_tasks set cancel_requested_at_ms = 1 where id = %s", [task.id])
    completing = asyncio.create_task(store.complete(task.id, ME, "r"))
    await until_blocked(database, completing)
    await somebody.commit()
    ended = await completing
    assert (ended.status, ended.result) == ("canceled", None)


@pytest.mark.parametrize("write", WRITES)
async def test_a_lock_that_is_not_had_in_time_is_named_and_may_be_asked_for_again(
    store: PostgresStore, somebody: psycopg.AsyncConnection[Any], database: str, write: str
) -> None:
    """Where the URL sets a lock_timeout."""
    hurried = PostgresStore(database + "?options=-c%20lock_timeout%3D20ms", installation=store.installation)
    task = await claimed(store)
    await lock(somebody, task)
    with pytest.raises(DatabaseUnavailable, match="may later: canceling statement due to lock timeout") as late:
        await WRITES[write](hurried, task)
    assert classify(late.value) is Fault.RETRY
    await somebody.rollback()
    assert await WRITES[write](hurried, task) is not None
    await hurried.close()


async def test_a_submit_that_the_database_undid_is_repeated(
    store: PostgresStore, somebody: psycopg.AsyncConnection[Any], database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hurried = PostgresStore(database + "?options=-c%20lock_timeout%3D20ms", installation=store.installation)
    run, undone = PsycopgExecutor.rows, []

    async def watched(executor: PsycopgExecutor, *given: Any) -> Any:
        try:
            return await run(executor, *given)
        except psycopg.errors.LockNotAvailable as late:
            undone.append(late)
            await somebody.rollback()
            raise

    await somebody.execute("lock table cairnq_tasks in exclusive mode")
    monkeypatch.setattr(PsycopgExecutor, "rows", watched)
    task = await hurried.submit("x")
    assert len(undone) == 1
    assert await store.get(task.id) == task
    await hurried.close()
