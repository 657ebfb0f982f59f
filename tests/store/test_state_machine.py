"""PROTOCOL's state machine as a full rectangle: each write against each state, and the invariants after it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cairnq import LostLease, PostgresStore, Task
from cairnq.pure.models import Held
from tests.store.helpers import about
from tests.support.clock import ClockOfDatabase
from tests.support.tasks import ERROR, LEASE_MS, ME, broken_rules, claimed, in_state

STATES = ("queued", "running", "cancel asked", "somebody's", "lapsed", "succeeded", "failed", "canceled")

Write = Callable[[PostgresStore, Task], Awaitable[Task | None]]
LOST = "LostLease"
NONE = "None"


async def complete_in(store: PostgresStore, task: Task) -> Task:
    async def write(session: Any) -> dict[str, int]:
        return {"r": 2}

    return (await store.complete_in(task.id, ME, write))[0]


async def release(store: PostgresStore, task: Task) -> Task | None:
    [status] = await store.release_many(ME, [Held(task.id, task.attempt)])
    return None if status is None else await store.get(task.id)


async def interrupt(store: PostgresStore, task: Task) -> Task | None:
    [status] = await store.release_many(ME, [Held(task.id, task.attempt)], started=True)
    return None if status is None else await store.get(task.id)


async def recover(store: PostgresStore, task: Task) -> Task | None:
    return await store.get(task.id) if await store.recover() else None


WRITES: dict[str, Write] = {
    "complete": lambda store, task: store.complete(task.id, ME, {"r": 2}),
    "complete_in": complete_in,
    "succeed": lambda store, task: store.succeed(task.id, ME, {"r": 2}),
    "fail": lambda store, task: store.fail(task.id, ME, ERROR, retryable=True, delay_ms=5000),
    "fail permanently": lambda store, task: store.fail(task.id, ME, ERROR, retryable=False),
    "progress": lambda store, task: store.progress(task.id, ME, 0.5, "half"),
    "heartbeat": lambda store, task: store.heartbeat(task.id, ME, LEASE_MS),
    "release": release,
    "interrupt": interrupt,
    "recover": recover,
    "cancel": lambda store, task: store.cancel(task.id),
    "retry": lambda store, task: store.retry(task.id),
}

#               queued      running      cancel asked  somebody's  lapsed      succeeded  failed     canceled
RECTANGLE = {
    "complete": (LOST,      "succeeded", "canceled",   LOST,       LOST,       LOST,      LOST,      LOST),
    "complete_in": (LOST,   "succeeded", "canceled",   LOST,       LOST,       LOST,      LOST,      LOST),
    "succeed": (LOST,       "succeeded", "succeeded",  LOST,       LOST,       LOST,      LOST,      LOST),
    "fail": (LOST,          "queued",    "canceled",   LOST,       LOST,       LOST,      LOST,      LOST),
    "fail permanently": (LOST, "failed", "canceled",   LOST,       LOST,       LOST,      LOST,      LOST),
    "progress": (LOST,      "running",   "running",    LOST,       LOST,       LOST,      LOST,      LOST),
    "heartbeat": (LOST,     "running",   "running",    LOST,       LOST,       LOST,      LOST,      LOST),
    "release": (NONE,       "queued",    "canceled",   NONE,       NONE,       NONE,      NONE,      NONE),
    "interrupt": (NONE,     "queued",    "canceled",   NONE,       NONE,       NONE,      NONE,      NONE),
    "recover": (NONE,       NONE,        NONE,         NONE,       "queued",   NONE,      NONE,      NONE),
    "cancel": ("canceled",  "running",   "running",    "running",  "running",  NONE,      NONE,      NONE),
    "retry": (NONE,         NONE,        NONE,         NONE,       NONE,       NONE,      "queued",  "queued"),
}  # fmt: skip


@pytest.mark.parametrize("write", WRITES)
async def test_each_write_against_each_state(
    store: PostgresStore, database: str, test_clock: ClockOfDatabase, write: str
) -> None:
    outcomes = []
    for state in STATES:
        task = await in_state(store, "running" if state == "lapsed" else state)
        if state == "lapsed":
            test_clock.advance(LEASE_MS + 1)
        outcomes.append(await outcome_of(WRITES[write], store, task))
        if state == "lapsed":
            test_clock.advance(-LEASE_MS - 1)
        assert broken_rules(database) == []
    assert outcomes == list(RECTANGLE[write]), dict(zip(STATES, outcomes, strict=True))


async def outcome_of(write: Write, store: PostgresStore, task: Task) -> str:
    """The status that a write led to. One that was refused has changed nothing."""
    try:
        after = await write(store, task)
    except LostLease as lost:
        assert lost.task_id == task.id
        assert await store.get(task.id) == task
        return LOST
    if after is None:
        assert await store.get(task.id) == task
        return NONE
    assert await store.get(task.id) == after
    return after.status


# --- what a transition writes beside the status ----------------------------------------------------------


async def test_a_claim_takes_the_lease_and_counts_the_attempt(store: PostgresStore) -> None:
    task = await claimed(store)
    assert (task.status, task.attempt, task.worker_id) == ("running", 1, ME)
    assert task.lease_until_ms is not None
    assert task.lease_until_ms - task.updated_at_ms == about(LEASE_MS)


async def test_a_success_keeps_its_result_and_who_ran_it(store: PostgresStore) -> None:
    running = await claimed(store)
    done = await store.complete(running.id, ME, {"r": 2})
    assert (done.result, done.progress, done.worker_id, done.error) == ({"r": 2}, 1.0, ME, None)
    assert done.completed_at_ms is not None
    assert done.completed_at_ms - done.updated_at_ms == about(0)


async def test_a_cancel_discards_the_result_and_keeps_the_error(store: PostgresStore) -> None:
    completed = await in_state(store, "cancel asked")
    assert (await store.complete(completed.id, ME, {"r": 2})).result is None
    failed = await in_state(store, "cancel asked")
    assert (await store.fail(failed.id, ME, ERROR, retryable=True)).error == ERROR


async def test_a_retryable_failure_waits_for_its_delay_and_forgets_the_attempts_traces(store: PostgresStore) -> None:
    running = await claimed(store)
    await store.progress(running.id, ME, 0.5, "half")
    queued = await store.fail(running.id, ME, ERROR, retryable=True, delay_ms=5000)
    assert (queued.status, queued.error, queued.attempt) == ("queued", ERROR, 1)
    assert (queued.worker_id, queued.progress, queued.message) == (None, None, None)
    assert queued.run_at_ms - queued.updated_at_ms == about(5000)


async def test_a_failure_without_attempts_left_is_final(store: PostgresStore) -> None:
    running = await claimed(store, max_attempts=1)
    failed = await store.fail(running.id, ME, ERROR, retryable=True, delay_ms=5000)
    assert (failed.status, failed.error, failed.worker_id) == ("failed", ERROR, ME)


async def test_a_release_gives_the_attempt_back(store: PostgresStore) -> None:
    first = await claimed(store)
    await store.fail(first.id, ME, ERROR, retryable=True)
    [second] = await store.claim([first.queue], ME, LEASE_MS)
    assert second.attempt == 2
    await store.progress(second.id, ME, 0.5, "half")
    assert await store.release_many(ME, [Held(second.id, 2)]) == ["queued"]
    released = await store.get(second.id)
    assert released is not None
    assert (released.attempt, released.error, released.run_at_ms) == (1, ERROR, second.run_at_ms)
    assert (released.worker_id, released.progress, released.message) == (None, None, None)


async def test_a_started_call_with_a_single_attempt_is_not_given_back(store: PostgresStore) -> None:
    running = await claimed(store, max_attempts=1)
    assert await store.release_many(ME, [Held(running.id, 1)], started=True, reason="drained") == ["failed"]
    ended = await store.get(running.id)
    assert ended is not None
    assert (ended.error["code"], ended.error["type"], ended.error["retryable"]) == ("interrupted", "Interrupted", False)
    assert "drained" in ended.error["message"]
    waiting = await claimed(store, max_attempts=1)
    assert await store.release_many(ME, [Held(waiting.id, 1)]) == ["queued"]


async def test_a_lapsed_lease_without_attempts_left_fails(store: PostgresStore, test_clock: ClockOfDatabase) -> None:
    running = await claimed(store, max_attempts=1)
    canceled = await in_state(store, "cancel asked")
    test_clock.advance(LEASE_MS + 1)
    assert await store.recover() == 2
    failed = await store.get(running.id)
    assert failed is not None
    assert (failed.status, failed.error["code"], failed.error["type"]) == ("failed", "lease_expired", "LeaseExpired")
    ended = await store.get_status(canceled.id)
    assert ended is not None
    assert ended.status == "canceled"


async def test_the_public_claim_recovers_first(store: PostgresStore, test_clock: ClockOfDatabase) -> None:
    running = await claimed(store)
    test_clock.advance(LEASE_MS + 1)
    sibling = store.sibling()
    assert sibling is not None
    [again] = await sibling.claim([running.queue], ME, LEASE_MS)
    await sibling.close()
    assert (again.id, again.attempt) == (running.id, 2)


async def test_a_retry_is_due_now_and_clean(store: PostgresStore) -> None:
    failed = await in_state(store, "failed")
    again = await store.retry(failed.id)
    assert again is not None
    assert (again.attempt, again.run_at_ms - again.updated_at_ms) == (1, about(0))
    assert (again.error, again.worker_id, again.completed_at_ms, again.progress) == (None, None, None, None)
    canceled = await store.cancel(again.id)
    assert canceled is not None
    reset = await store.retry(canceled.id, reset_attempt=True)
    assert reset is not None
    assert (reset.attempt, reset.cancel_requested_at_ms) == (0, None)


async def test_progress_leaves_what_it_is_not_given(store: PostgresStore) -> None:
    running = await claimed(store)
    await store.progress(running.id, ME, 0.25, "a")
    assert (await store.progress(running.id, ME, message="b")).progress == 0.25
    assert (await store.progress(running.id, ME, 0.5)).message == "b"


async def test_a_write_that_names_another_attempt_is_refused(store: PostgresStore) -> None:
    first = await claimed(store)
    await store.fail(first.id, ME, ERROR, retryable=True)
    [second] = await store.claim([first.queue], ME, LEASE_MS)
    with pytest.raises(LostLease):
        await store.complete(first.id, ME, "late", attempt=first.attempt)
    with pytest.raises(LostLease):
        await store.progress(first.id, ME, 0.5, attempt=first.attempt)
    with pytest.raises(LostLease):
        await store.heartbeat(first.id, ME, attempt=first.attempt)
    assert (await store.complete(second.id, ME, "in time", attempt=2)).result == "in time"


async def test_what_a_lost_settlement_wrote_is_rolled_back(store: PostgresStore, database: str) -> None:
    running = await claimed(store)

    async def write(session: Any) -> int:
        await session.execute("create table side_effect (n int)")
        rows = await session.query("insert into side_effect select cast($1 as int) returning n", [7])
        return int(rows[0]["n"])

    with pytest.raises(LostLease):
        await store.complete_in(running.id, "worker_00000000000000000000000000", write)
    task, value = await store.complete_in(running.id, ME, write)
    assert (task.result, value) == (7, 7)
