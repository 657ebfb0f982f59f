"""Stopping: what runs may finish, what cannot goes back unspent, and what does not end is told."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from cairnq import CairnQ, CairnQError, DatabaseUnavailable, LostLease, TaskContext
from tests.support.gates import Gate, Recorder, ThreadGate, soon
from tests.support.routes import Route
from tests.worker.conftest import MakeWorker


async def test_a_stop_lets_what_runs_finish_and_claims_nothing_more(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, gate = make_worker(), Gate()
    worker.register("gate", gate)
    async with worker.background():
        first = await client.submit("gate", 1)
        await gate.entered()
        worker.stop()
        second = await client.submit("gate", 2)
        gate.open()
    assert (await client.get(first.id)).result == 1  # type: ignore[union-attr]
    assert (await client.get(second.id)).status == "queued"  # type: ignore[union-attr]


async def test_at_the_deadline_a_call_is_cancelled_and_its_attempt_given_back(
    client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    worker, gate = make_worker(), Gate()
    worker.register("gate", gate)
    async with worker.background(drain_timeout=0.1):
        task = await client.submit("gate", 1)
        await gate.entered()
    row = await client.get(task.id)
    assert row is not None
    assert (row.status, row.attempt, row.worker_id, row.lease_until_ms, row.error) == ("queued", 0, None, None, None)
    assert gate.cancelled == 1
    assert events.all("task.failed") == []
    assert events.all("task.left") == []


async def test_what_a_lost_reply_brought_is_given_back_before_the_worker_leaves(
    store: Any, client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    worker, claim_many = make_worker(), store.claim_many
    worker.register("x", lambda _ctx: None)

    async def lose_the_reply(*arguments: Any) -> Any:
        await claim_many(*arguments)
        worker.stop()
        raise DatabaseUnavailable("the connection was reset before the reply came")

    task = await client.submit("x")
    store.claim_many = lose_the_reply
    async with worker.background():
        await events.wait("database.failed")
    row = await client.get(task.id)
    assert row is not None
    assert (row.status, row.attempt, row.worker_id) == ("queued", 0, None)


@pytest.mark.fault(row=13)
async def test_forced_drains_do_not_use_up_the_attempts_of_a_long_task(client: CairnQ, make_worker: MakeWorker) -> None:
    task = await client.submit("long", "done", max_attempts=2)
    for _ in range(3):
        worker, gate = make_worker(), Gate()
        worker.register("long", gate)
        async with worker.background(drain_timeout=0):
            await gate.entered()
    worker = make_worker()
    worker.register("long", lambda ctx, payload: [payload, ctx.attempt])
    async with worker.background():
        assert (await client.wait(task.id)).result == ["done", 1]


async def test_a_call_with_one_attempt_is_not_run_again(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, gate = make_worker(), Gate()
    worker.register("once", gate)
    async with worker.background(drain_timeout=0):
        task = await client.submit("once", max_attempts=1)
        await gate.entered()
    row = await client.get(task.id)
    assert row is not None
    assert (row.status, row.attempt) == ("failed", 1)
    assert (row.error["type"], row.error["code"], row.error["retryable"]) == ("Interrupted", "interrupted", False)


async def test_a_released_call_whose_cancel_was_asked_ends_canceled(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, gate = make_worker(), Gate()
    worker.register("gate", gate)
    async with worker.background(drain_timeout=0):
        task = await client.submit("gate")
        await gate.entered()
        await client.cancel(task.id)
    assert (await client.get(task.id)).status == "canceled"  # type: ignore[union-attr]


async def test_a_handler_that_finishes_in_spite_of_the_cancel_is_settled_by_its_result(
    client: CairnQ, make_worker: MakeWorker
) -> None:
    worker, entered = make_worker(), asyncio.Event()

    @worker.task
    async def tidy(ctx: TaskContext) -> str:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await ctx.progress(0.9, "tidying up")
        return "finished anyway"

    async with worker.background(drain_timeout=0):
        task = await client.submit("tidy")
        await entered.wait()
    row = await client.get(task.id)
    assert row is not None
    assert (row.status, row.result) == ("succeeded", "finished anyway")


async def test_what_a_cancelled_handler_raises_while_it_cleans_up_is_told_and_costs_no_attempt(
    client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    worker, entered = make_worker(), asyncio.Event()

    @worker.task
    async def clumsy(ctx: TaskContext) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as cancelled:
            raise RuntimeError("the clean-up failed") from cancelled

    async with worker.background(drain_timeout=0):
        task = await client.submit("clumsy")
        await entered.wait()
    row = await client.get(task.id)
    assert row is not None
    assert (row.status, row.attempt) == ("queued", 0)
    [failed] = events.all("task.failed")
    assert str(failed["raised"]) == "the clean-up failed"


@pytest.mark.fault(row=17)
async def test_a_handler_that_swallows_its_cancellation_does_not_wedge_the_drain(
    client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    worker, contexts, release = make_worker(), asyncio.Queue(), asyncio.Event()

    @worker.task
    async def stubborn(ctx: TaskContext) -> str:
        contexts.put_nowait(ctx)
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "too late"

    async with worker.background(drain_timeout=0.1):
        task = await client.submit("stubborn")
        ctx = await soon(contexts.get())
    [left] = events.all("task.left")
    assert (left["task_id"], left["attempt"]) == (task.id, 1)
    assert ctx.lost_lease
    with pytest.raises(LostLease):
        await ctx.succeed("too late")
    release.set()
    await asyncio.sleep(0)
    row = await client.get(task.id)
    assert row is not None
    assert (row.status, row.attempt, row.result) == ("running", 1, None), "its lease ends with the process"


async def test_a_thread_that_does_not_return_is_told_and_not_given_back(
    client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    worker, gate = make_worker(), ThreadGate()
    worker.register("stuck", gate)
    async with worker.background(drain_timeout=0.1):
        task = await client.submit("stuck", 1)
        await gate.entered()
    [left] = events.all("task.left")
    assert left["task_id"] == task.id
    row = await client.get(task.id)
    assert row is not None
    assert (row.status, row.attempt) == ("running", 1), "it may still be doing things"
    gate.open()
    assert gate.returned.wait(60)
    assert (await client.get(task.id)) == row


async def test_what_never_started_is_given_back_at_once(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, gate = make_worker(concurrency=4, max_in_flight_bytes=200), Gate()
    worker.register("gate", gate)
    for _ in range(20):
        await client.submit("gate", "x" * 10)
    async with worker.background() as worker:
        await gate.entered()
        # Sized by small payloads, the next claims bring more than the budget lets start.
        large = [await client.submit("gate", "x" * 150, priority=1) for _ in range(4)]
        gate.open()
        worker.stop()
    rows = [await client.get(task.id) for task in large]
    assert all(row is not None and row.status in {"queued", "succeeded"} for row in rows)
    assert all(row is not None and row.attempt == (1 if row.succeeded else 0) for row in rows)
    assert (await client.stats())["default"]["running"] == 0


async def test_rows_of_a_claim_that_was_under_way_at_the_stop_are_given_back(
    client: CairnQ, make_worker: MakeWorker
) -> None:
    worker, claimed, go_on, ran = make_worker(), asyncio.Event(), asyncio.Event(), []
    store: Any = worker._store
    original = store.claim_many

    async def claim_many(*arguments: Any) -> Any:
        rows = await original(*arguments)
        if rows:
            claimed.set()
            await go_on.wait()
        return rows

    store.claim_many = claim_many
    worker.register("x", lambda ctx: ran.append(ctx.task_id))
    async with worker.background():
        task = await client.submit("x")
        await claimed.wait()
        worker.stop()
        asyncio.get_running_loop().call_later(0.1, go_on.set)
    row = await client.get(task.id)
    assert row is not None
    assert (row.status, row.attempt, ran) == ("queued", 0, [])


async def test_a_stop_may_come_before_the_start_and_more_than_once(client: CairnQ, make_worker: MakeWorker) -> None:
    worker = make_worker()
    worker.register("x", lambda _ctx: None)
    worker.stop()
    worker.stop()
    await soon(worker.run())
    async with worker.background():
        worker.stop()
        worker.stop()
    async with worker.background():
        await client.call("x")


async def test_a_stop_may_come_from_any_thread(make_worker: MakeWorker, events: Recorder) -> None:
    worker = make_worker()
    running = asyncio.create_task(worker.run())
    await events.wait("worker.started")
    threading.Thread(target=worker.stop).start()
    await soon(running)
    assert events.all("worker.drained")


async def test_a_cancelled_run_gives_back_what_it_runs(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, gate = make_worker(), Gate()
    worker.register("gate", gate)
    running = asyncio.create_task(worker.run())
    task = await client.submit("gate")
    await gate.entered()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(running)
    row = await client.get(task.id)
    assert row is not None
    assert (row.status, row.attempt) == ("queued", 0)


async def test_one_worker_runs_once_at_a_time_and_each_run_has_its_own_id(
    client: CairnQ, make_worker: MakeWorker
) -> None:
    worker, seen = make_worker(), []
    worker.register("who", lambda ctx: ctx.worker_id)
    for _ in range(2):
        async with worker.background():
            with pytest.raises(CairnQError, match="running already"):
                await worker.run()
            assert await client.call("who") == worker.worker_id
            seen.append(worker.worker_id)
    assert len(set(seen)) == 2


async def test_close_stops_waits_and_closes_its_own_store(database: str, client: CairnQ) -> None:
    worker = Route(database).worker()
    worker.register("x", lambda _ctx: None)
    running = asyncio.create_task(worker.run())
    await client.call("x")
    await worker.close()
    await soon(running)
    await worker.close()


async def test_a_failure_inside_background_stops_the_worker(client: CairnQ, make_worker: MakeWorker) -> None:
    worker = make_worker()
    with pytest.raises(KeyError, match="mine"):
        async with worker.background():
            raise KeyError("mine")
    assert worker._running is None


async def test_run_takes_its_own_concurrency(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, gate = make_worker(), Gate()
    worker.register("gate", gate)
    async with worker.background(concurrency=3):
        tasks = [await client.submit("gate", number) for number in range(3)]
        for _ in tasks:
            await gate.entered()
        gate.open()
        for task in tasks:
            await client.wait(task.id)
    assert gate.most_inside == 3
