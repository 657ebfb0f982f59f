"""max_run_ms: the contexts are flagged first, the handler is cancelled, and what it left behind writes nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cairnq import CairnQ, LostLease, TaskContext, TaskFailed
from tests.support.gates import Gate, Recorder, ThreadGate, soon
from tests.worker.conftest import MakeWorker


async def test_a_call_that_runs_too_long_is_flagged_then_cancelled_and_fails_retryably(
    client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    worker, seen = make_worker(max_run_ms=100), []

    @worker.task
    async def endless(ctx: TaskContext) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append((ctx.lost_lease, ctx.lease_lost.is_set()))
            with pytest.raises(LostLease):
                await ctx.progress(0.9)
            with pytest.raises(LostLease):
                await ctx.succeed("after all")
            with pytest.raises(LostLease):
                await ctx.submit("more")
            raise

    async with worker.background():
        with pytest.raises(TaskFailed) as failed:
            await client.call("endless", max_attempts=2)
    assert (failed.value.type, failed.value.code, failed.value.retryable) == ("HandlerTimeout", "handler_timeout", True)
    assert "max_run_ms = 100" in str(failed.value)
    assert seen == [(True, True)] * 2, "two attempts, each flagged before it was cancelled"
    assert len(events.all("task.timed_out")) == 2
    assert events.all("lease.lost") == []
    assert (await client.stats())["default"]["queued"] == 0, "the left-over handler submitted nothing"


async def test_a_call_in_time_is_left_alone(client: CairnQ, make_worker: MakeWorker, events: Recorder) -> None:
    worker = make_worker(max_run_ms=60_000)
    worker.register("quick", lambda _ctx: "quick")
    async with worker.background():
        assert await client.call("quick") == "quick"
    assert events.all("task.timed_out") == []


async def test_a_thread_keeps_its_slot_after_the_timeout_until_it_returns(
    client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    worker, gate, wrote = make_worker(max_run_ms=100, concurrency=1), ThreadGate(), asyncio.Queue()
    loop = asyncio.get_running_loop()

    @worker.task
    def stuck(ctx: Any, payload: Any) -> str:
        gate(ctx, payload)
        outcomes = []
        for write in (lambda: ctx.progress(0.5), lambda: ctx.succeed(1), lambda: ctx.submit("more")):
            try:
                write()
            except LostLease:
                outcomes.append("refused")
        loop.call_soon_threadsafe(wrote.put_nowait, (ctx.lost_lease, ctx.lease_lost.is_set(), outcomes))
        return "too late"

    worker.register("next", lambda _ctx: "next")
    async with worker.background():
        task = await client.submit("stuck", max_attempts=1)
        await gate.entered()
        ended = await client.wait(task.id)
        assert (ended.status, ended.error["code"]) == ("failed", "handler_timeout")
        behind = await client.submit("next")
        await events.wait("task.timed_out")
        ref = await client.get_status(behind.id)
        assert ref is not None
        assert ref.status == "queued", "the only slot is taken by the thread"
        gate.open()
        assert (await client.wait(behind.id)).result == "next"
        assert await soon(wrote.get()) == (True, True, ["refused"] * 3)
    assert (await client.get(task.id)) == ended, "nothing that the thread did afterwards was written"


async def test_a_left_over_handler_cannot_write_while_the_same_worker_runs_the_task_again(
    client: CairnQ, make_worker: MakeWorker
) -> None:
    worker, contexts, release = make_worker(max_run_ms=150, concurrency=2), asyncio.Queue(), asyncio.Event()

    @worker.task
    async def stubborn(ctx: TaskContext) -> str:
        contexts.put_nowait(ctx)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await release.wait()  # swallowed
        return f"attempt {ctx.attempt}"

    async with worker.background():
        task = await client.submit("stubborn", max_attempts=2)
        first, second = await soon(contexts.get()), await soon(contexts.get())
        assert (first.attempt, second.attempt) == (1, 2)
        for write in (first.succeed("wrong"), first.fail("wrong"), first.progress(0.1), first.heartbeat()):
            with pytest.raises(LostLease):
                await write
        with pytest.raises(LostLease):
            await first.succeed_in(lambda session: session.execute("select 1"))
        running = await client.get(task.id)
        assert running is not None
        assert (running.attempt, running.progress, running.result) == (2, None, None)
        release.set()
        assert (await client.wait(task.id)).error["code"] == "handler_timeout"


async def test_a_batch_times_out_as_a_whole_but_for_what_it_settled(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, gate = make_worker(max_run_ms=1500), Gate()

    @worker.task(batch=2)
    async def many(contexts: list[TaskContext]) -> None:
        await contexts[0].succeed("in time")
        await gate(contexts, None)

    tasks = await client.submit_many([{"name": "many", "max_attempts": 1}] * 2)
    async with worker.background():
        ended = [await client.wait(task.id) for task in tasks]
    assert (ended[0].status, ended[0].result) == ("succeeded", "in time")
    assert (ended[1].status, ended[1].error["code"]) == ("failed", "handler_timeout")
    assert gate.cancelled == 1
