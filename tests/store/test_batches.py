"""The forms for many rows: each row is judged by itself, and what one of them is never stops the others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from cairnq import Beat, Held, Outcome, PostgresStore, Settlement, Standing, Task
from tests.store.conftest import OpenStore
from tests.store.helpers import about
from tests.support.clock import ClockOfDatabase
from tests.support.tasks import ERROR, LEASE_MS, ME, SOMEBODY, claimed, in_state


async def running(store: PostgresStore, count: int, **options: object) -> list[Task]:
    """Tasks of mine, in the order of their submit."""
    await store.submit_many([{"name": "x", "queue": "batch", **options} for _ in range(count)])
    return await store.claim(["batch"], ME, LEASE_MS, limit=count)


async def statuses(store: PostgresStore, tasks: Sequence[Task]) -> list[str]:
    found = [await store.get(task.id) for task in tasks]
    return ["gone" if task is None else task.status for task in found]


def complete(task: Task, result: object = None) -> Settlement:
    return Settlement.complete(task.id, task.attempt, result)


def raw(task: Task, body: str, outcome: Outcome = Outcome.COMPLETE) -> Settlement:
    return Settlement(task.id, task.attempt, outcome, body)


# --- settle_many -----------------------------------------------------------------------------------------


async def test_each_row_of_a_settlement_is_judged_by_itself(store: PostgresStore, test_clock: ClockOfDatabase) -> None:
    lapsed = await claimed(store)
    test_clock.advance(LEASE_MS + 1)
    theirs = await claimed(store, SOMEBODY)
    mine = await claimed(store)
    ended = await in_state(store, "succeeded")
    queued = await in_state(store, "queued")
    before = [await store.get(task.id) for task in (lapsed, theirs, ended, queued)]
    settled = await store.settle_many(
        ME,
        [
            complete(lapsed),
            complete(theirs),
            Settlement.complete(mine.id, mine.attempt + 1, None),
            complete(mine, "r"),
            complete(ended),
            Settlement.complete(queued.id, 1, None),
            Settlement.complete("task_that never was", 1, None),
        ],
    )
    assert settled == [None, None, None, "succeeded", None, None, None]
    assert [await store.get(task.id) for task in (lapsed, theirs, ended, queued)] == before


async def test_a_settlement_holds_every_outcome(store: PostgresStore) -> None:
    tasks = await running(store, 7)
    canceled = await store.cancel(tasks[6].id)
    assert canceled is not None
    settled = await store.settle_many(
        ME,
        [
            complete(tasks[0], {"r": 0}),
            Settlement.fail(tasks[1].id, 1, ERROR, retryable=True, delay_ms=7000),
            Settlement.fail(tasks[2].id, 1, ERROR, retryable=False, delay_ms=7000),
            Settlement.release(tasks[3].id, 1, started=False),
            Settlement.release(tasks[4].id, 1, started=True),
            Settlement.complete(tasks[5].id, 1, None, forget=True),
            complete(tasks[6], "dropped"),
        ],
    )
    assert settled == ["succeeded", "queued", "failed", "queued", "queued", "succeeded", "canceled"]
    after = [await store.get(task.id) for task in tasks]
    assert [None if task is None else task.attempt for task in after] == [1, 1, 1, 0, 0, None, 1]
    assert [None if task is None else task.result for task in after] == [{"r": 0}, *[None] * 6]
    retried = after[1]
    assert retried is not None
    assert retried.run_at_ms - retried.updated_at_ms == about(7000)


async def test_settling_twice_is_told_as_none_the_second_time(store: PostgresStore) -> None:
    [task] = await running(store, 1)
    assert await store.settle_many(ME, [complete(task, 1)]) == ["succeeded"]
    assert await store.settle_many(ME, [complete(task, 2)]) == [None]
    after = await store.get(task.id)
    assert after is not None
    assert after.result == 1


async def test_only_the_attempt_that_is_named_is_settled(store: PostgresStore) -> None:
    """The same worker holds the task a second time while its first settlement is still under way."""
    [first] = await running(store, 1)
    await store.settle_many(ME, [Settlement.fail(first.id, 1, ERROR, retryable=True)])
    [second] = await store.claim(["batch"], ME, LEASE_MS)
    assert await store.settle_many(ME, [complete(first, "late"), complete(second, "in time")]) == [None, "succeeded"]


async def test_a_large_batch_is_one_answer_in_order(store: PostgresStore) -> None:
    tasks = await running(store, 1000)
    assert len(tasks) == 1000
    odd = tasks[1::2]
    settled = await store.settle_many(ME, [complete(task, task.id) for task in reversed(odd)])
    assert settled == ["succeeded"] * 500
    assert (await store.stats())["batch"] == {
        "queued": 0,
        "running": 500,
        "succeeded": 500,
        "failed": 0,
        "canceled": 0,
    }


REFUSED_BODIES = {
    "nested too deeply": "[" * 200_000 + "]" * 200_000,
    "no JSON": "{",
    "a NUL that text does not allow": '"\x00"',
}
REFUSED_BY_POSTGRES = {
    "a number beyond numeric": '{"n": 1e400000}',
    "a NUL that JSON allows": '"\\u0000"',
    "half a surrogate pair": '"\\ud800"',
}


@pytest.mark.parametrize("what", REFUSED_BODIES)
@pytest.mark.parametrize("place", [0, 3, 6])
async def test_only_the_culprit_of_a_refused_body_fails(store: PostgresStore, what: str, place: int) -> None:
    await one_culprit_fails(store, REFUSED_BODIES[what], place)


@pytest.mark.postgres
@pytest.mark.parametrize("what", REFUSED_BY_POSTGRES)
async def test_only_the_culprit_of_what_postgresql_refuses_fails(store: PostgresStore, what: str) -> None:
    await one_culprit_fails(store, REFUSED_BY_POSTGRES[what], 3)


async def one_culprit_fails(store: PostgresStore, body: str, place: int) -> None:
    tasks = await running(store, 7)
    batch = [complete(task, "fine") for task in tasks]
    batch[place] = raw(tasks[place], body)
    expected = ["succeeded"] * 7
    expected[place] = "failed"
    assert await store.settle_many(ME, batch) == expected
    culprit = await store.get(tasks[place].id)
    assert culprit is not None
    assert (culprit.error["code"], culprit.error["type"]) == ("unserializable_result", "SerializationError")
    assert culprit.error["retryable"] is False
    assert (culprit.result, culprit.worker_id) == (None, ME)


@pytest.mark.parametrize("outcome", [Outcome.FORGET, Outcome.SUCCEED, Outcome.FAIL, Outcome.FAIL_PERMANENTLY])
async def test_a_refused_body_ends_its_task_whatever_the_outcome(store: PostgresStore, outcome: Outcome) -> None:
    tasks = await running(store, 2)
    tasks.append(await claimed(store, key="a key keeps the row that would be forgotten"))
    batch = [complete(tasks[0]), complete(tasks[1]), raw(tasks[2], "{", outcome)]
    assert await store.settle_many(ME, batch) == ["succeeded", "succeeded", "failed"]
    culprit = await store.get(tasks[2].id)
    assert culprit is not None
    assert culprit.error["code"] == "unserializable_result"


async def test_every_body_may_be_the_culprit(store: PostgresStore) -> None:
    tasks = await running(store, 5)
    assert await store.settle_many(ME, [raw(task, "{") for task in tasks]) == ["failed"] * 5


async def test_a_refused_body_of_a_task_no_longer_held_is_none(store: PostgresStore) -> None:
    theirs = await claimed(store, SOMEBODY)
    assert await store.settle_many(ME, [raw(theirs, "{")]) == [None]
    assert await store.get(theirs.id) == theirs


# --- release_many ----------------------------------------------------------------------------------------


async def test_a_release_answers_for_each_attempt(store: PostgresStore) -> None:
    tasks = await running(store, 3)
    await store.cancel(tasks[1].id)
    held = [Held(task.id, task.attempt) for task in tasks]
    assert await store.release_many(ME, [*held, Held(tasks[0].id, 2)]) == ["queued", "canceled", "queued", None]
    assert await store.release_many(ME, held) == [None, None, None]
    assert await store.release_many(ME, []) == []


async def test_a_started_call_that_may_run_again_gives_its_attempt_back(store: PostgresStore) -> None:
    [task] = await running(store, 1, max_attempts=2)
    assert await store.release_many(ME, [Held(task.id, 1)], started=True) == ["queued"]
    after = await store.get(task.id)
    assert after is not None
    assert (after.attempt, after.error) == (0, None)


async def test_an_interrupted_call_says_why_even_if_nobody_gave_a_reason(store: PostgresStore) -> None:
    [task] = await running(store, 1, max_attempts=1)
    assert await store.settle_many(ME, [Settlement.release(task.id, 1, started=True)]) == ["failed"]
    after = await store.get(task.id)
    assert after is not None
    assert after.error["code"] == "interrupted"


async def test_a_cancel_that_was_asked_wins_over_an_interruption(store: PostgresStore) -> None:
    [task] = await running(store, 1, max_attempts=1)
    await store.cancel(task.id)
    assert await store.release_many(ME, [Held(task.id, 1)], started=True) == ["canceled"]


# --- beat_many -------------------------------------------------------------------------------------------


async def test_a_beat_renews_what_is_held_and_tells_of_cancels(
    store: PostgresStore, test_clock: ClockOfDatabase
) -> None:
    mine, asked = await running(store, 2)
    theirs = await claimed(store, SOMEBODY)
    await store.cancel(asked.id)
    test_clock.advance(LEASE_MS - 1000)
    beats = [
        Beat(mine.id, ME, 1, LEASE_MS),
        Beat(asked.id, ME, 1, 2 * LEASE_MS),
        Beat(theirs.id, SOMEBODY, 1, LEASE_MS),
        Beat(theirs.id, ME, 1, LEASE_MS),
        Beat(mine.id, ME, 2, LEASE_MS),
        Beat("task_that never was", ME, 1, LEASE_MS),
    ]
    assert await store.beat_many(beats) == [False, True, False, None, None, None]
    assert await store.beat_many([]) == []
    renewed = [await store.get(task.id) for task in (mine, asked, theirs)]
    leases = [0 if task is None else (task.lease_until_ms or 0) - task.updated_at_ms for task in renewed]
    assert leases == [about(LEASE_MS), about(2 * LEASE_MS), about(LEASE_MS)]


async def test_a_lapsed_lease_is_not_renewed(store: PostgresStore, test_clock: ClockOfDatabase) -> None:
    [task] = await running(store, 1)
    test_clock.advance(LEASE_MS + 1)
    assert await store.beat_many([Beat(task.id, ME, 1, LEASE_MS)]) == [None]
    assert await store.heartbeat_batch([task.id], ME) == {}
    assert await store.get(task.id) == task


async def test_a_heartbeat_batch_names_what_is_still_held(store: PostgresStore) -> None:
    mine, asked = await running(store, 2)
    theirs = await claimed(store, SOMEBODY)
    await store.cancel(asked.id)
    assert await store.heartbeat_batch([mine.id, asked.id, theirs.id, "task_none"], ME) == {
        mine.id: False,
        asked.id: True,
    }


async def test_a_heartbeat_answers_with_the_task(store: PostgresStore) -> None:
    [task] = await running(store, 1)
    renewed = await store.heartbeat(task.id, ME, 2 * LEASE_MS, attempt=1)
    assert (renewed.lease_until_ms or 0) - renewed.updated_at_ms == about(2 * LEASE_MS)
    assert renewed.cancel_requested is False
    await store.cancel(task.id)
    assert (await store.heartbeat(task.id, ME)).cancel_requested


# --- where attempts stand --------------------------------------------------------------------------------


async def test_an_attempt_stands_as_held_or_expired_or_as_it_ended(
    store: PostgresStore, test_clock: ClockOfDatabase
) -> None:
    expired = await claimed(store)
    test_clock.advance(LEASE_MS + 1)
    held = await claimed(store)
    theirs = await claimed(store, SOMEBODY)
    canceled = await in_state(store, "cancel asked")
    await store.complete(canceled.id, ME, None)
    standings = {
        Held(held.id, 1): Standing.HELD,
        Held(held.id, 2): Standing.ENDED,
        Held(expired.id, 1): Standing.EXPIRED,
        Held(theirs.id, 1): Standing.ENDED,
        Held((await in_state(store, "succeeded")).id, 1): Standing.SUCCEEDED,
        Held((await in_state(store, "succeeded")).id, 2): Standing.ENDED,
        Held((await in_state(store, "failed")).id, 1): Standing.FAILED,
        Held(canceled.id, 1): Standing.CANCELED,
        Held((await in_state(store, "canceled")).id, 0): Standing.ENDED,
        Held((await in_state(store, "queued")).id, 0): Standing.ENDED,
        Held("task_none", 1): Standing.GONE,
    }
    assert await store.standing_many(ME, [*standings]) == [*standings.values()]
    assert await store.standing_many(ME, []) == []
    assert await store.standing_many(ME, [Held(held.id, 1)] * 2) == [Standing.HELD] * 2


async def test_what_a_worker_holds_is_read_with_its_attempts(store: PostgresStore, test_clock: ClockOfDatabase) -> None:
    first, second = await running(store, 2)
    await store.fail(first.id, ME, ERROR, retryable=True)
    [again] = await store.claim(["batch"], ME, LEASE_MS)
    await claimed(store, SOMEBODY)
    await in_state(store, "succeeded")
    assert set(await store.held_by(ME)) == {Held(again.id, 2), Held(second.id, 1)}
    test_clock.advance(LEASE_MS + 1)
    assert len(await store.held_by(ME)) == 2, "lapsed, but nobody has taken them back"
    assert await store.held_by("worker_none") == []


# --- races ----------------------------------------------------------------------------------------------


async def test_settlement_and_crash_settlement_do_not_deadlock(store: PostgresStore, open_store: OpenStore) -> None:
    """Both write the same rows at once; each row is written by exactly one of them."""
    other = await open_store()
    for _ in range(30):
        tasks = await running(store, 20)
        settled, failed = await asyncio.gather(
            store.settle_many(ME, [complete(task) for task in reversed(tasks)]), other.fail_worker(ME, ERROR)
        )
        by_crash = {ref.id for ref in failed}
        by_us = {task.id for task, status in zip(reversed(tasks), settled, strict=True) if status == "succeeded"}
        assert by_crash.isdisjoint(by_us)
        left = {task.id for task in tasks} - by_crash - by_us
        assert {held.task_id for held in await store.held_by(ME)} == left, "skipped by both, for the next round"
        await store.release_many(ME, [Held(task_id, 1) for task_id in left])
        for queued in await store.list(status="queued"):
            await store.cancel(queued.id)
