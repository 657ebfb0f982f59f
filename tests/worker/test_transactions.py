"""`succeed_in`: the handler's own rows and its settlement in one transaction, whatever comes between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cairnq import CairnQ, LostLease, SerializationError, TaskContext
from tests.support.gates import Recorder
from tests.support.rigs import move_to_another_worker
from tests.worker.conftest import MakeWorker


async def test_succeed_in_commits_the_rows_and_the_settlement_together(
    client: CairnQ, make_worker: MakeWorker, store: Any
) -> None:
    await table(store)
    worker = make_worker()

    @worker.task
    async def order(ctx: TaskContext, payload: int) -> str:
        async def write(session: Any) -> dict[str, int]:
            await session.query("insert into orders values ($1)", [payload])
            return {"order": payload}

        task = await ctx.succeed_in(write)
        assert task is not None
        assert (task.status, task.result, ctx.settled) == ("succeeded", {"order": payload}, True)
        assert await ctx.succeed_in(write) is None, "settled before"
        return "ignored"

    async with worker.background():
        assert await client.call("order", 7) == {"order": 7}
    assert await rows(store) == [7]


async def test_succeed_in_from_a_thread_writes_on_that_thread(
    client: CairnQ, make_worker: MakeWorker, store: Any
) -> None:
    await table(store)
    worker = make_worker()

    @worker.task
    def order(ctx: Any, payload: int) -> None:
        def write(session: Any) -> int:
            session.execute("insert into orders values (1)")
            [row] = session.query("select count(*) + cast($1 as int) as n from orders", [payload])
            return int(row["n"])

        assert ctx.succeed_in(write).result == payload + 1

    @worker.task
    def mistaken(ctx: Any) -> str:
        def write(session: Any) -> None:
            session.execute("insert into orders values (2)")
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            ctx.succeed_in(write)
        return "open"

    async with worker.background():
        assert await client.call("order", 7) == 8
        assert await client.call("mistaken") == "open"
    assert await rows(store) == [1]


async def test_what_the_write_raises_rolls_back_and_leaves_the_attempt_open(
    client: CairnQ, make_worker: MakeWorker, store: Any
) -> None:
    await table(store)
    worker = make_worker()

    @worker.task
    async def order(ctx: TaskContext) -> str:
        async def write(session: Any) -> None:
            await session.execute("insert into orders values (1)")
            raise KeyError("mine")

        async def unserializable(session: Any) -> bytes:
            await session.execute("insert into orders values (2)")
            return b"bytes"

        with pytest.raises(KeyError, match="mine"):
            await ctx.succeed_in(write)
        with pytest.raises(SerializationError):
            await ctx.succeed_in(unserializable)
        assert not ctx.settled
        return "went on"

    async with worker.background():
        assert await client.call("order") == "went on"
    assert await rows(store) == []


@pytest.mark.postgres  # SQLite has one writer: nobody else writes while a transaction is open
async def test_a_lost_lease_rolls_the_callers_rows_back(
    client: CairnQ, make_worker: MakeWorker, store: Any, events: Recorder
) -> None:
    await table(store)
    worker, raised = make_worker(), []

    @worker.task
    async def order(ctx: TaskContext) -> None:
        async def write(session: Any) -> None:
            await session.execute("insert into orders values (1)")
            await move_to_another_worker(store, ctx.task_id)

        try:
            await ctx.succeed_in(write)
        except LostLease as lost:
            raised.append((lost.task_id, ctx.lost_lease))
            raise

    async with worker.background():
        task = await client.submit("order")
        lost = await events.wait("lease.lost")
    assert raised == [(task.id, True)]
    assert lost["task_id"] == task.id
    assert await rows(store) == []
    assert (await client.get(task.id)).worker_id == "worker_OTHER"  # type: ignore[union-attr]


@pytest.mark.postgres  # SQLite has one writer: nobody else writes while a transaction is open
async def test_beats_renew_the_row_while_the_callers_write_runs(
    client: CairnQ, make_worker: MakeWorker, store: Any, events: Recorder
) -> None:
    await table(store)
    worker = make_worker(lease_ms=1500)

    @worker.task
    async def slow(ctx: TaskContext) -> None:
        async def write(session: Any) -> str:
            await session.execute("insert into orders values (1)")
            await session.query("select pg_sleep($1)", [4.5])  # sleep: the caller's write takes that long
            return "after three leases"

        await ctx.succeed_in(write)

    async with worker.background():
        assert await client.call("slow") == "after three leases"
    assert events.all("lease.lost") == []


class SlowWrite:
    """A write that says when it has begun, and ends when the test lets it."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()

    async def __call__(self, session: Any) -> str:
        await session.execute("insert into orders values (1)")
        self.begun.set()
        await self.may_end.wait()
        return "of the write"


@pytest.mark.postgres  # SQLite has one writer: nobody else writes while a transaction is open
async def test_an_outcome_chosen_while_the_write_runs_stands(
    client: CairnQ, make_worker: MakeWorker, store: Any, events: Recorder
) -> None:
    await table(store)
    worker, write, told = make_worker(), SlowWrite(), []

    @worker.task
    async def order(ctx: TaskContext) -> None:
        writing = asyncio.create_task(ctx.succeed_in(write))
        await write.begun.wait()
        await ctx.fail("changed its mind", retryable=False)
        write.may_end.set()
        told.append(await writing)

    async with worker.background():
        task = await client.wait((await client.submit("order")).id)
    assert (task.status, task.error["message"]) == ("failed", "changed its mind")
    assert told == [None]
    assert await rows(store) == []
    assert events.all("lease.lost") == []


@pytest.mark.postgres  # SQLite has one writer: nobody else writes while a transaction is open
async def test_a_write_that_outlives_its_call_cannot_take_the_calls_result_away(
    client: CairnQ, make_worker: MakeWorker, store: Any, events: Recorder
) -> None:
    await table(store)
    worker, write, settle_many = make_worker(), SlowWrite(), store.settle_many
    left_behind: list[asyncio.Task[Any]] = []

    @worker.task
    async def order(ctx: TaskContext) -> str:
        left_behind.append(asyncio.create_task(ctx.succeed_in(write)))
        await write.begun.wait()
        return "of the call"

    async def settle_once_the_write_has_ended(*arguments: Any) -> Any:
        write.may_end.set()
        await asyncio.wait(left_behind)
        return await settle_many(*arguments)

    store.exchanges, store.settle_many = False, settle_once_the_write_has_ended
    async with worker.background():
        assert await client.call("order") == "of the call"
    assert left_behind[0].result() is None, "settled before"
    assert await rows(store) == []
    assert events.all("lease.lost") == []


async def table(store: Any) -> None:
    async with store._transaction() as bound:
        await bound.session.execute("create table orders (id int)")


async def rows(store: Any) -> list[int]:
    async with store._autocommit() as bound:
        return [row[0] for row in await bound.session.rows("select id from orders order by id", [])]
