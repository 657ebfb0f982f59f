"""The store over an executor of the application's own: their driver, their rows, their transactions, never closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool

from cairnq import (
    AlreadyExists,
    CairnQ,
    DatabaseUnavailable,
    Held,
    InvalidArgument,
    LostLease,
    PermissionDenied,
    PostgresStore,
    SchemaMismatch,
    Settlement,
    Standing,
    StoreClosed,
)
from tests.store.postgres.executors import ROWS, Executor, opened
from tests.support.cluster import name_of
from tests.support.tasks import ERROR, LEASE_MS, ME


@pytest.fixture(params=ROWS)
async def executor(request: pytest.FixtureRequest, database: str) -> AsyncIterator[Executor]:
    async with opened(database, request.param) as executor:
        yield executor


@pytest.fixture
async def over(executor: Executor) -> AsyncIterator[CairnQ]:
    """A client over the caller's executor."""
    async with CairnQ.postgres(executor) as client:
        yield client


async def test_a_task_lives_its_life_over_it(over: CairnQ) -> None:
    store = over.store
    task = await over.submit("x", {"n": [1, None, "é"]}, key="k", metadata={"m": 1}, priority=3)
    assert await over.get(task.id) == await over.get_by_key("k") == task
    assert await over.list(status="queued", queue="default", name="x") == [task]
    [running] = await store.claim(["default"], ME, names=["x", "y"])
    assert (running.id, running.payload, running.attempt) == (task.id, {"n": [1, None, "é"]}, 1)
    assert (await store.progress(task.id, ME, 0.5, "half")).progress == 0.5
    assert (await store.heartbeat(task.id, ME)).running
    assert await store.heartbeat_batch([task.id, "task_none"], ME) == {task.id: False}
    await over.cancel(task.id)
    assert (await store.fail(task.id, ME, ERROR)).canceled
    assert (await over.retry_by_key("k", reset_attempt=True)) is not None
    [again] = await store.claim(["default"], ME)
    assert (await store.complete(again.id, ME, "r")).result == "r"
    assert (await over.stats())["default"]["succeeded"] == 1
    assert await over.queue_depth("default", 10) == 10
    assert await over.purge() == [task.id]
    assert await store.protocol_version() == 1


async def test_batches_and_sessions_work_over_it(over: CairnQ) -> None:
    store = over.store
    tasks = await over.submit_many([{"name": "x", "payload": number} for number in range(6)])

    async def plan(draw: Any) -> list[Any]:
        return [await draw(["x"], 4), await draw(None, 10)]

    first, rest = await store.claim_session(["default"], ME, LEASE_MS, None, plan)
    assert [task.payload for task in (*first, *rest)] == [0, 1, 2, 3, 4, 5]
    settled = await store.settle_many(
        ME,
        [
            Settlement.complete(tasks[0].id, 1, "r"),
            Settlement.complete(tasks[1].id, 1, None, forget=True),
            Settlement.release(tasks[2].id, 1, started=False),
            Settlement(tasks[3].id, 1, Settlement.complete("", 1, 0).outcome, "{"),
        ],
    )
    assert settled == ["succeeded", "succeeded", "queued", "failed"]
    assert await store.standing_many(ME, [Held(tasks[4].id, 1), Held(tasks[0].id, 1)]) == [
        Standing.HELD,
        Standing.SUCCEEDED,
    ]
    assert {ref.id for ref in await store.fail_worker(ME, ERROR)} == {tasks[4].id, tasks[5].id}


async def test_races_for_a_key_have_one_winner_over_it(over: CairnQ) -> None:
    tasks = await asyncio.gather(*(over.submit("x", key="k") for _ in range(8)))
    assert len({task.id for task in tasks}) == 1
    with pytest.raises(AlreadyExists):
        await over.submit("x", key="k", conflict="reject")


# --- complete_in ----------------------------------------------------------------------------------------


@pytest.fixture
def orders(database: str) -> str:
    """The caller's own table."""
    with psycopg.connect(database) as connection:
        connection.execute("create table orders (id int primary key, total int not null)")
    return database


def totals(dsn: str) -> list[int]:
    with psycopg.connect(dsn) as connection:
        return [row[0] for row in connection.execute("select total from orders order by id")]


async def test_the_callers_rows_commit_with_the_settlement(over: CairnQ, orders: str) -> None:
    await over.submit("x")
    [task] = await over.store.claim(["default"], ME)

    async def write(session: Any) -> dict[str, int]:
        await session.execute("insert into orders values (1, 100); insert into orders values (2, 200)")
        [row] = await session.query("select sum(total)::int from orders where id < $1", [3])
        assert totals(orders) == [], "nothing is visible before the settlement"
        return {"sum": next(iter(row.values())) if isinstance(row, dict) else row[0]}

    done, value = await over.store.complete_in(task.id, ME, write, attempt=1)
    assert (done.status, done.result, value) == ("succeeded", {"sum": 300}, {"sum": 300})
    assert totals(orders) == [100, 200]


async def test_a_lost_lease_rolls_the_callers_rows_back(over: CairnQ, orders: str) -> None:
    await over.submit("x")
    [task] = await over.store.claim(["default"], ME)

    async def write(session: Any) -> None:
        await session.query("insert into orders values ($1, $2)", [1, 100])

    for worker_id, attempt in (("worker_other", None), (ME, 2)):
        with pytest.raises(LostLease):
            await over.store.complete_in(task.id, worker_id, write, attempt=attempt)
    assert totals(orders) == []
    assert await over.get(task.id) == task


async def test_what_the_caller_raises_is_raised_and_rolls_back(over: CairnQ, orders: str) -> None:
    await over.submit("x")
    [task] = await over.store.claim(["default"], ME)

    async def write(session: Any) -> None:
        await session.execute("insert into orders values (1, 100)")
        raise KeyError("mine")

    async def break_a_rule(session: Any) -> None:
        await session.execute("insert into orders values (1, null)")

    with pytest.raises(KeyError, match="mine"):
        await over.store.complete_in(task.id, ME, write)
    with pytest.raises(psycopg.errors.NotNullViolation):
        await over.store.complete_in(task.id, ME, break_a_rule)
    assert totals(orders) == []
    assert await over.get(task.id) == task


async def test_a_result_that_is_no_json_rolls_back(over: CairnQ, orders: str) -> None:
    await over.submit("x")
    [task] = await over.store.claim(["default"], ME)

    async def write(session: Any) -> set[int]:
        await session.execute("insert into orders values (1, 100)")
        return {1}

    with pytest.raises(ValueError, match="result is not JSON"):
        await over.store.complete_in(task.id, ME, write)
    assert totals(orders) == []
    assert await over.get(task.id) == task


async def test_a_cancel_that_was_asked_wins_and_the_callers_rows_stay(over: CairnQ, orders: str) -> None:
    """The work is done and committed; only the task's end is the cancel's."""
    await over.submit("x")
    [task] = await over.store.claim(["default"], ME)
    await over.cancel(task.id)

    async def write(session: Any) -> str:
        await session.execute("insert into orders values (1, 100)")
        return "dropped"

    done, value = await over.store.complete_in(task.id, ME, write)
    assert (done.status, done.result, value) == ("canceled", None, "dropped")
    assert totals(orders) == [100]


# --- theirs to open and close -----------------------------------------------------------------------------


async def test_it_is_never_closed_and_the_store_is(executor: Executor) -> None:
    client = CairnQ.postgres(executor)
    await client.submit("x")
    await client.close()
    assert (await executor.query("select 1 as one", []))[0]
    with pytest.raises(StoreClosed):
        await client.submit("x")


async def test_it_has_no_sibling(executor: Executor) -> None:
    assert PostgresStore(executor).sibling() is None


async def test_its_schema_is_checked_and_not_made(executor: Executor, database: str) -> None:
    with pytest.raises(
        SchemaMismatch, match="'elsewhere' is configured, but the connection given resolves to 'public'"
    ):
        await PostgresStore(executor, schema="elsewhere").connect()
    with psycopg.connect(database) as connection:
        assert connection.execute("select to_regnamespace('elsewhere')").fetchone() == (None,)
    assert (await PostgresStore(executor, schema="public").connect()).schema == "public"


async def test_its_errors_are_named_like_our_own(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create role reader login")
        connection.execute("grant select on all tables in schema public to reader")
    dsn = database.replace("postgres@", "reader@")
    try:
        async with opened(dsn, "tuples") as executor:
            store = PostgresStore(executor)
            assert await store.stats() == {}
            with pytest.raises(PermissionDenied, match="cairnq_tasks"):
                await store.submit("x")
            await executor.pool.close()
            with pytest.raises(DatabaseUnavailable):
                await store.submit("x")
    finally:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("drop owned by reader")
            connection.execute("drop role reader")


@pytest.mark.parametrize("source", [None, 7, object(), AsyncConnectionPool])
def test_what_is_no_source_is_refused(source: Any) -> None:
    with pytest.raises(InvalidArgument, match="a database URL or an object with query, execute and transaction"):
        PostgresStore(source)


# --- waiting --------------------------------------------------------------------------------------------


async def test_without_a_listen_of_its_own_a_wait_polls(over: CairnQ) -> None:
    task = await over.submit("x")
    waiting = asyncio.create_task(over.wait(task.id, poll_ms=5, max_poll_ms=10))
    await over.cancel(task.id)
    assert (await waiting).canceled


@pytest.mark.parametrize("stops", ["at once", "as a coroutine"])
async def test_its_own_listen_is_used_and_ended(executor: Executor, database: str, stops: str) -> None:
    heard: list[Any] = []

    class Listening(Executor):
        async def listen(self, channels: Any, on_notify: Any, on_close: Any) -> Any:
            heard.append(list(channels))
            self.on_notify, self.on_close = on_notify, on_close

            async def later() -> None:
                heard.append("ended")

            return later if stops == "as a coroutine" else lambda: heard.append("ended")

    listening = Listening(executor.pool, "tuples")
    store = PostgresStore(listening)
    states: list[bool] = []
    stop = await store.listen(["a", "b"], lambda *told: heard.append(told), states.append)
    listening.on_notify("a", "payload")
    listening.on_notify("b", None)
    listening.on_close()
    await stop()
    assert heard == [["a", "b"], ("a", "payload"), ("b", ""), "ended"]
    assert states == [True, False]
    assert name_of(database)
