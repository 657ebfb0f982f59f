"""A cancel asked by one SDK reaches the other's handler, and a lease that one lets lapse is the other's to run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cairnq import CairnQ, LostLease, TaskContext
from cairnq.pure.ids import new_worker_id
from tests.support.peers import PeerProcess
from tests.support.routes import Route
from tests.support.suspects import suspect

LEASE_MS = 1500
"""Short, so that a beat (a third of it) tells of a cancel soon and a lost lease is found soon."""


class UntilCanceled:
    """A handler that says when it runs, and leaves when a cancel is asked."""

    def __init__(self) -> None:
        self.started = asyncio.Event()

    async def __call__(self, ctx: TaskContext, payload: Any) -> str:
        self.started.set()
        while not await ctx.canceled():  # noqa: ASYNC110 - no event tells of a cancel in the shared API
            await asyncio.sleep(0.02)  # sleep: between two looks for a cancel
        return "left"


async def test_their_handler_sees_our_cancel(ours: CairnQ, theirs: PeerProcess) -> None:
    await theirs.call("work", handlers={"x": "until_canceled"}, queues=["default"], lease_ms=LEASE_MS)
    task = await ours.submit("x")
    await theirs.event("started")
    asked = await ours.cancel(task.id)
    assert asked is not None
    assert asked.running
    await theirs.event("canceled")
    ended = await ours.wait(task.id)
    assert (ended.status, ended.result) == ("canceled", None)


async def test_our_handler_sees_their_cancel(shared: str, ours: CairnQ, theirs: PeerProcess) -> None:
    handler = UntilCanceled()
    worker = Route(shared).worker(lease_ms=LEASE_MS)
    worker.register("x", handler)
    async with worker.background():
        task = await theirs.call("submit", name="x")
        await handler.started.wait()
        assert (await theirs.call("cancel", task_id=task["id"]))["status"] == "running"
        ended = await theirs.call("wait", task_id=task["id"])
    assert (ended["status"], ended["result"]) == ("canceled", None)


async def test_a_task_of_their_killed_worker_runs_on_ours(shared: str, ours: CairnQ, theirs: PeerProcess) -> None:
    await theirs.call("work", handlers={"x": "gated"}, queues=["default"], lease_ms=LEASE_MS)
    task = await ours.submit("x", "kept")
    await theirs.event("started")
    await theirs.kill()
    worker = Route(shared).worker(lease_ms=LEASE_MS)

    @worker.task("x")
    async def report(ctx: TaskContext, payload: Any) -> Any:
        return [ctx.attempt, payload]

    async with worker.background():
        ended = await ours.wait(task.id)
    assert ended.result == [2, "kept"]
    assert ended.worker_id == worker.worker_id


async def test_a_task_whose_lease_we_let_lapse_runs_on_theirs(ours: CairnQ, theirs: PeerProcess) -> None:
    task = await ours.submit("x")
    lapsed = new_worker_id()
    [claimed] = await ours.store.claim(["default"], lapsed, LEASE_MS)
    await theirs.call("work", handlers={"x": "gated"}, queues=["default"], lease_ms=LEASE_MS)
    started = await theirs.event("started")
    assert (started["task_id"], started["attempt"]) == (task.id, 2)
    with pytest.raises(LostLease):
        await ours.store.complete(task.id, lapsed, "too late", attempt=claimed.attempt)
    await theirs.call("open", task_id=task.id)
    ended = await ours.wait(task.id)
    assert (ended.attempt, ended.result) == (2, {})


async def test_a_task_without_attempts_left_fails_whoever_recovers_it(ours: CairnQ, theirs: PeerProcess) -> None:
    task = await ours.submit("x", max_attempts=1)
    await ours.store.claim(["default"], new_worker_id(), LEASE_MS)
    await theirs.call("work", handlers={"other": "echo"}, queues=["default"], lease_ms=LEASE_MS)
    ended = await theirs.call("wait", task_id=task.id)
    assert (ended["status"], ended["error"]["code"]) == ("failed", "lease_expired")


async def test_we_retry_and_purge_what_they_ended(ours: CairnQ, theirs: PeerProcess) -> None:
    task = await theirs.call("submit", name="x", key="k")
    assert (await theirs.call("cancel", task_id=task["id"]))["status"] == "canceled"
    retried = await ours.retry(task["id"])
    assert retried is not None
    assert retried.queued
    await ours.cancel(task["id"])
    assert (await theirs.call("retry", task_id=task["id"]))["status"] == "queued"
    await ours.cancel(task["id"])
    assert await ours.purge() == [task["id"]]
    assert await theirs.call("get_by_key", key="k") is None


async def test_their_worker_runs_a_suspect_of_ours_as_any_other_task(ours: CairnQ, theirs: PeerProcess) -> None:
    """The mark is an error like another to them: what we would run alone is not left lying by their claims."""
    task_id = await suspect(ours.store, "x", "kept")
    assert not await ours.store.claim(["default"], new_worker_id(), names=["x"])
    await theirs.call("work", handlers={"x": "echo"}, queues=["default"])
    ended = await ours.wait(task_id)
    assert (ended.status, ended.result, ended.attempt) == ("succeeded", "kept", 1)
