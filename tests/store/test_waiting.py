"""Waits end with the task, by notification or by poll; a wait that runs out says what the task is stuck in."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cairnq import CairnQ, InvalidArgument, Settlement, TaskCanceled, TaskDef, TaskFailed, TaskTimeout
from tests.store.conftest import OpenClient
from tests.support.tasks import ERROR, ME, claimed, in_state

NEVER = {"timeout_ms": 600_000, "poll_ms": 600_000, "max_poll_ms": 600_000}
"""A wait with these options is woken by a notification, or the test runs into its limit."""

AT_ONCE = {"timeout_ms": 0}


async def complete_next(client: CairnQ, result: Any = None, queue: str = "default") -> str:
    [task] = await client.store.claim([queue], ME)
    return (await client.store.complete(task.id, ME, result)).id


@pytest.mark.parametrize("state", ["succeeded", "failed", "canceled"])
async def test_a_task_that_has_ended_is_there_at_once(client: CairnQ, state: str) -> None:
    task = await in_state(client.store, state, key="k")
    assert await client.wait(task.id, **NEVER) == task
    assert await client.wait_by_key("k", **NEVER) == task
    assert await client.wait(task.id, **AT_ONCE) == task


@pytest.mark.parametrize("by_key", [False, True])
async def test_the_end_wakes_a_wait_before_its_poll(client: CairnQ, open_client: OpenClient, by_key: bool) -> None:
    other = await open_client()
    for number in range(10):
        task = await client.submit("x", key=f"k{number}")
        waiting = asyncio.create_task(
            client.wait_by_key(f"k{number}", **NEVER) if by_key else client.wait(task.id, **NEVER)
        )
        for _ in range(number):  # from the first moment of the wait to its sleep
            await asyncio.sleep(0)
        await complete_next(other, number)
        assert (await waiting).result == number


async def test_many_waits_share_it(client: CairnQ, open_client: OpenClient) -> None:
    other = await open_client()
    tasks = await client.submit_many([{"name": "x", "payload": number} for number in range(200)])
    waits = [asyncio.create_task(client.wait(task.id, **NEVER)) for task in tasks for _ in range(2)]
    for task in await other.store.claim(["default"], ME, limit=200):
        await other.store.complete(task.id, ME, task.payload)
    ended = await asyncio.gather(*waits)
    assert [task.result for task in ended] == [number for number in range(200) for _ in range(2)]


async def test_a_poll_alone_finds_the_end(client: CairnQ, open_client: OpenClient) -> None:
    """Nothing depends on a notification: a task that was there before anybody listened, and one under no key yet."""
    waiting = asyncio.create_task(client.wait_by_key("later", poll_ms=5, max_poll_ms=10))
    task = await (await open_client()).submit("x", key="later")
    await client.cancel(task.id)
    assert (await waiting).id == task.id


async def test_a_wait_by_key_follows_the_key(client: CairnQ, open_client: OpenClient) -> None:
    """Replaced while it is waited for: the wait is for the task that stands there when it ends."""
    other = await open_client()
    old = await client.submit("x", key="k")
    await client.store.claim(["default"], ME)
    waiting = asyncio.create_task(client.wait_by_key("k", timeout_ms=60_000, poll_ms=5, max_poll_ms=10))
    new = await other.submit("x", key="k", conflict="replace")
    assert new.id != old.id
    await other.store.complete(old.id, ME, "old")
    await complete_next(other, "new")
    assert (await waiting).result == "new"


async def test_a_wait_that_is_given_up_leaves_others_alone(client: CairnQ, open_client: OpenClient) -> None:
    other = await open_client()
    task = await client.submit("x")
    given_up, waiting = (asyncio.create_task(client.wait(task.id, **NEVER)) for _ in range(2))
    await asyncio.sleep(0)
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    await complete_next(other, "r")
    assert (await waiting).result == "r"


# --- call -----------------------------------------------------------------------------------------------


async def test_a_call_returns_the_result(client: CairnQ, open_client: OpenClient) -> None:
    other = await open_client()
    double: TaskDef[int, int] = TaskDef("double")
    calling = asyncio.create_task(client.call(double, 21, key="k", queue="q", **NEVER))
    while (task := await other.get_by_key("k")) is None:
        pass
    assert (task.name, task.payload, task.queue) == ("double", 21, "q")
    await complete_next(other, 42, "q")
    assert await calling == 42


async def test_a_call_raises_what_the_task_failed_with(client: CairnQ) -> None:
    calling = asyncio.create_task(client.call("x", key="k", timeout_ms=60_000, poll_ms=5))
    while (await client.get_by_key("k")) is None:
        pass
    [task] = await client.store.claim(["default"], ME)
    await client.store.fail(task.id, ME, {**ERROR, "details": {"a": 1}}, retryable=False)
    with pytest.raises(TaskFailed, match="^handler_error: it broke$") as failed:
        await calling
    assert (failed.value.type, failed.value.retryable, failed.value.details) == ("Broken", True, {"a": 1})


async def test_a_call_of_a_canceled_task_says_so(client: CairnQ) -> None:
    calling = asyncio.create_task(client.call("x", key="k", timeout_ms=60_000, poll_ms=5))
    while (task := await client.cancel_by_key("k")) is None:
        pass
    with pytest.raises(TaskCanceled) as canceled:
        await calling
    assert canceled.value.task_id == task.id


@pytest.mark.parametrize("spelling", ["timeout_ms", "wait_timeout_ms"])
async def test_a_call_that_runs_out_leaves_the_task_running_on(client: CairnQ, spelling: str) -> None:
    with pytest.raises(TaskTimeout, match="did not end within 0 ms") as late:
        await client.call("x", **{spelling: 0})
    assert late.value.task_id is not None
    task = await client.get(late.value.task_id)
    assert task is not None
    assert task.queued
    assert late.value.task == task


async def test_two_spellings_at_once_are_refused_before_anything_is_submitted(client: CairnQ) -> None:
    with pytest.raises(InvalidArgument, match="timeout_ms or wait_timeout_ms, not both"):
        await client.call("x", timeout_ms=1, wait_timeout_ms=1)
    for wrong in ({"timeout_ms": -1}, {"poll_ms": 0}, {"max_poll_ms": 0}, {"timeout_ms": 1.5}, {"delay_ms": -1}):
        with pytest.raises(InvalidArgument):
            await client.call("x", **wrong)
    assert await client.stats() == {}


async def test_a_call_inside_a_transaction_would_wait_for_itself(client: CairnQ) -> None:
    with pytest.raises(InvalidArgument, match="before your transaction commits"):
        await client.call("x", session=object())
    assert await client.stats() == {}


# --- a time-out says what it is stuck in ----------------------------------------------------------------


async def delayed(client: CairnQ) -> str:
    return (await client.submit("x", delay_ms=60_000)).id


async def unclaimed(client: CairnQ) -> str:
    return (await client.submit("x", queue="slow lane")).id


async def running(client: CairnQ) -> str:
    task = await claimed(client.store, max_attempts=5)
    return (await client.store.progress(task.id, ME, 0.25, "page 3")).id


async def asked_to_leave(client: CairnQ) -> str:
    return (await in_state(client.store, "cancel asked")).id


async def in_backoff(client: CairnQ) -> str:
    task = await claimed(client.store)
    return (await client.store.fail(task.id, ME, ERROR, retryable=True, delay_ms=60_000)).id


async def retried(client: CairnQ) -> str:
    task = await in_state(client.store, "failed")
    await client.retry(task.id)
    return task.id


async def nothing(client: CairnQ) -> str:
    return "task_none"


STUCK = {
    delayed: "queued in 'default', submitted to run 60000 ms later",
    unclaimed: "queued in 'slow lane' and no worker has claimed it",
    running: rf"running, attempt 1 of 5 on {ME}, progress 25% \(page 3\)$",
    asked_to_leave: "running, attempt 1 of 3 .*, a cancel was asked",
    in_backoff: r"queued again .* after attempt 1 of 3 failed \(handler_error: it broke\)",
    retried: "queued in .* and no worker has claimed it",
    nothing: "no such task",
}


@pytest.mark.parametrize("stuck", STUCK, ids=lambda stuck: stuck.__name__)
async def test_a_time_out_says_what_it_is_stuck_in(client: CairnQ, stuck: Any) -> None:
    task_id = await stuck(client)
    with pytest.raises(TaskTimeout, match=f"^task {task_id} did not end within 0 ms: .*{STUCK[stuck]}") as late:
        await client.wait(task_id, **AT_ONCE)
    assert (late.value.task_id, late.value.key) == (task_id, None)
    assert late.value.task == await client.get(task_id)


async def test_a_time_out_by_key_names_the_key(client: CairnQ) -> None:
    with pytest.raises(TaskTimeout, match="the task under key 'k' did not end within 0 ms: there is no such") as late:
        await client.wait_by_key("k", **AT_ONCE)
    assert (late.value.task_id, late.value.task, late.value.key) == (None, None, "k")
    task = await client.submit("x", key="k")
    with pytest.raises(TaskTimeout, match="under key 'k' .*no worker has claimed it") as late:
        await client.wait_by_key("k", **AT_ONCE)
    assert (late.value.task_id, late.value.task, late.value.key) == (task.id, task, "k")


async def test_a_forgotten_success_is_waited_for_in_vain(client: CairnQ) -> None:
    task = await claimed(client.store)
    await client.store.settle_many(ME, [Settlement.complete(task.id, 1, None, forget=True)])
    with pytest.raises(TaskTimeout, match="forgotten after its success"):
        await client.wait(task.id, **AT_ONCE)


async def test_the_time_it_may_take_is_kept(client: CairnQ) -> None:
    task = await client.submit("x")
    loop = asyncio.get_running_loop()
    started = loop.time()
    with pytest.raises(TaskTimeout, match="within 150 ms"):
        await client.wait(task.id, timeout_ms=150, poll_ms=60_000, max_poll_ms=60_000)
    assert 0.15 <= loop.time() - started < 5
