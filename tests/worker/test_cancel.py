"""A cancel is learnt with the beats; the handler sees it and leaves; it wins over every outcome."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cairnq import CairnQ, TaskContext
from tests.support.gates import Gate, Recorder, ThreadGate
from tests.worker.conftest import MakeWorker


async def until_canceled(ctx: TaskContext) -> None:
    while not await ctx.canceled():
        await ctx.progress(0.5)


async def test_a_running_handler_sees_the_cancel_and_leaves(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, entered = make_worker(lease_ms=2000), asyncio.Event()

    @worker.task
    async def patient(ctx: TaskContext) -> str:
        entered.set()
        await until_canceled(ctx)
        return "left by itself, not cancelled from outside"

    async with worker.background():
        task = await client.submit("patient")
        await entered.wait()
        await client.cancel(task.id)
        ended = await client.wait(task.id)
    assert (ended.status, ended.result, ended.error) == ("canceled", None, None)


async def test_a_plain_handler_sees_it_too(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, gate = make_worker(lease_ms=2000), ThreadGate()

    @worker.task
    def patient(ctx: Any) -> None:
        gate(ctx, None)
        while not ctx.canceled():
            pass

    async with worker.background():
        task = await client.submit("patient")
        await gate.entered()
        await client.cancel(task.id)
        gate.open()
        assert (await client.wait(task.id)).canceled


@pytest.mark.parametrize("outcome", ["succeed", "fail", "retryable"])
async def test_a_cancel_wins_over_the_outcome_even_when_the_handler_never_looked(
    client: CairnQ, make_worker: MakeWorker, outcome: str
) -> None:
    worker, gate = make_worker(), Gate()

    @worker.task
    async def heedless(ctx: TaskContext, payload: Any) -> str:
        await gate(ctx, payload)
        if outcome == "fail":
            await ctx.fail("no", retryable=False)
        elif outcome == "retryable":
            raise RuntimeError("no")
        return "done"

    async with worker.background():
        task = await client.submit("heedless")
        await gate.entered()
        await client.cancel(task.id)
        gate.open()
        ended = await client.wait(task.id)
    assert (ended.status, ended.result) == ("canceled", None)
    assert ended.error is None if outcome == "succeed" else ended.error["message"] == "no"
    assert ended.attempt == 1


async def test_a_queued_task_that_was_canceled_never_runs(
    client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    worker, ran = make_worker(), []
    worker.register("note", lambda _ctx, payload: ran.append(payload))
    gone, kept = await client.submit("note", "gone"), await client.submit("note", "kept")
    await client.cancel(gone.id)
    async with worker.background():
        await client.wait(kept.id)
    assert ran == ["kept"]
