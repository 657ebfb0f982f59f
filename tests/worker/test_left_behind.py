"""A `succeed_in` that outlives its call: where its commit fails then, the attempt ends as its call did."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from threading import Thread
from typing import Any

import psycopg
import pytest

from cairnq import CairnQ, InvalidArgument, Registry, TaskContext
from tests.store.postgres.sessions import until_sessions
from tests.support.gates import Recorder
from tests.support.rigs import MakeRig
from tests.worker.conftest import MakeWorker

GATE = 7_001

REFUSING = f"""
create table orders (id int);
create function refuse() returns trigger language plpgsql as $$
begin
    perform pg_advisory_xact_lock_shared({GATE});
    if new.id = 2 then
        return null;
    end if;
    raise exception 'refused at the commit' using errcode = '23514';
end $$;
create constraint trigger refuse after insert on orders deferrable initially deferred
    for each row execute function refuse();
"""

pytestmark = pytest.mark.postgres  # SQLite has one writer: nothing else is written while a transaction is open


async def test_where_a_batch_has_raised_meanwhile_each_of_it_is_failed(
    client: CairnQ, make_worker: MakeWorker, database: str, events: Recorder
) -> None:
    worker, behind = make_worker(concurrency=1), []

    @worker.task(batch=2)
    async def pay(ctxs: list[TaskContext]) -> None:
        if ctxs[0].attempt > 1:
            return
        assert len(ctxs) == 2
        behind.append(asyncio.create_task(ctxs[0].succeed_in(insert)))
        await until_settled(ctxs[0])
        raise ValueError("the other one")

    @worker.task
    async def later(ctx: TaskContext) -> None:
        pass

    async with commits_that_wait(database) as go_on:
        tasks = await client.submit_many([{"name": "pay"}, {"name": "pay"}])
        async with worker.background():
            await events.wait("task.failed")
            await client.call("later")
            await go_on()
            for task in tasks:
                done = await client.wait(task.id, timeout_ms=60_000)
                assert (done.status, done.attempt) == ("succeeded", 2)
    [left] = behind
    assert "refused at the commit" in str(left.exception())
    assert events.all("lease.lost") == []


async def test_where_a_call_has_returned_meanwhile_what_it_returned_stands(
    client: CairnQ, make_worker: MakeWorker, database: str, events: Recorder
) -> None:
    worker, behind = make_worker(concurrency=1), []

    @worker.task
    async def order(ctx: TaskContext) -> str:
        behind.append(asyncio.create_task(ctx.succeed_in(insert)))
        await until_settled(ctx)
        return "of the call"

    @worker.task
    async def later(ctx: TaskContext) -> None:
        pass

    async with commits_that_wait(database) as go_on, worker.background():
        task = await client.submit("order")
        await client.call("later")
        await go_on()
        done = await client.wait(task.id, timeout_ms=60_000)
    assert (done.status, done.attempt, done.result) == ("succeeded", 1, "of the call")
    [left] = behind
    assert "refused at the commit" in str(left.exception())
    assert events.all("lease.lost") == []


async def test_where_a_plain_function_has_returned_meanwhile_what_it_returned_stands(
    client: CairnQ, make_worker: MakeWorker, database: str, events: Recorder
) -> None:
    worker, behind, raised = make_worker(concurrency=1), [], []

    @worker.task
    def order(ctx: Any) -> str:
        def write() -> None:
            try:
                ctx.succeed_in(insert)
            except InvalidArgument as error:
                raised.append(str(error))

        behind.append(Thread(target=write))
        behind[0].start()
        while not ctx.settled:
            behind[0].join(0.01)
        return "of the call"

    @worker.task
    async def later(ctx: TaskContext) -> None:
        pass

    async with commits_that_wait(database) as go_on, worker.background():
        task = await client.submit("order")
        await client.call("later")
        await go_on()
        done = await client.wait(task.id, timeout_ms=60_000)
        await asyncio.to_thread(behind[0].join)
    assert (done.status, done.attempt, done.result) == ("succeeded", 1, "of the call")
    assert len(raised) == 1
    assert "refused at the commit" in raised[0]
    assert events.all("lease.lost") == []


async def test_what_the_transaction_settles_makes_room(client: CairnQ, make_worker: MakeWorker, database: str) -> None:
    worker, behind = make_worker(max_in_flight_bytes=16), []

    @worker.task
    async def order(ctx: TaskContext, payload: str) -> None:
        behind.append(asyncio.create_task(ctx.succeed_in(insert_for_good)))
        await until_settled(ctx)

    @worker.task
    async def later(ctx: TaskContext) -> int:
        return 1

    async with commits_that_wait(database) as go_on, worker.background():
        task = await client.submit("order", "more than it may hold")
        waits = await client.submit("later")
        await go_on()
        assert (await client.wait(waits.id, timeout_ms=60_000)).result == 1
        assert (await client.wait(task.id)).result == "of the write"


async def test_a_drain_waits_for_the_transaction(client: CairnQ, make_rig: MakeRig, database: str) -> None:
    registry, behind = Registry(), []

    @registry.task
    async def order(ctx: TaskContext) -> None:
        behind.append(asyncio.create_task(ctx.succeed_in(insert_for_good)))
        await until_settled(ctx)

    async with commits_that_wait(database) as go_on, make_rig(registry) as rig:
        task = await client.submit("order")
        rig.engine.wake()
        await until_sessions(database, "wait_event = 'advisory'", bool)
        draining = asyncio.create_task(rig.engine.drain(float("inf")))
        await go_on()
        assert await draining == []
        assert (await client.get(task.id)).result == "of the write"  # type: ignore[union-attr]


async def until_settled(ctx: TaskContext) -> None:
    while True:
        if ctx.settled:
            return
        await asyncio.sleep(0)


async def insert_for_good(session: Any) -> str:
    await session.execute("insert into orders values (2)")
    return "of the write"


async def insert(session: Any) -> str:
    await session.execute("insert into orders values (1)")
    return "of the write"


@asynccontextmanager
async def commits_that_wait(database: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """A table `orders`. Commits of inserts wait for the call of what is yielded, and then are refused, but for a 2."""
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as gate:
        await gate.execute(REFUSING)
        await gate.execute("select pg_advisory_lock(%s)", [GATE])

        async def go_on() -> None:
            await until_sessions(database, "wait_event = 'advisory'", bool)
            await gate.execute("select pg_advisory_unlock(%s)", [GATE])

        yield go_on
