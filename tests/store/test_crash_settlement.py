"""What a dead worker held: failed retryably with backoff, in one statement."""

from __future__ import annotations

import pytest

from cairnq import InvalidArgument, PostgresStore, Task, TaskRef
from tests.support.clock import ClockOfDatabase
from tests.support.tasks import ERROR, LEASE_MS, ME, SOMEBODY, broken_rules, claimed


async def delays(store: PostgresStore, tasks: list[Task]) -> list[int]:
    """From the write to the next run, in ms."""
    found = [await store.get(task.id) for task in tasks]
    return [task.run_at_ms - task.updated_at_ms for task in found if task is not None]


async def held(store: PostgresStore, count: int, *, attempt: int = 1, max_attempts: int = 100) -> list[Task]:
    """`count` tasks that I hold at their attempt number `attempt`."""
    await store.submit_many([{"name": "x", "queue": "crash", "max_attempts": max_attempts} for _ in range(count)])
    for _ in range(1, attempt):
        for task in await store.claim(["crash"], ME, limit=count):
            await store.fail(task.id, ME, ERROR, retryable=True)
    tasks = await store.claim(["crash"], ME, limit=count)
    assert [task.attempt for task in tasks] == [attempt] * count
    return tasks


async def test_everything_it_held_is_queued_again_with_the_cause(store: PostgresStore, database: str) -> None:
    tasks = await held(store, 5)
    theirs = await claimed(store, SOMEBODY)
    await store.progress(tasks[0].id, ME, 0.5, "half")
    failed = await store.fail_worker(ME, ERROR)
    assert sorted(failed, key=lambda ref: ref.id) == [TaskRef(task.id, "queued") for task in tasks]
    for task in tasks:
        again = await store.get(task.id)
        assert again is not None
        assert (again.error, again.attempt, again.worker_id, again.lease_until_ms) == (ERROR, 1, None, None)
        assert (again.progress, again.message, again.completed_at_ms) == (None, None, None)
    assert await store.get(theirs.id) == theirs
    assert await store.fail_worker(ME, ERROR) == []
    assert broken_rules(database) == []


async def test_without_attempts_left_it_is_final_and_a_cancel_wins(store: PostgresStore, database: str) -> None:
    final = await claimed(store, max_attempts=1)
    asked = await claimed(store)
    await store.cancel(asked.id)
    failed = {ref.id: ref.status for ref in await store.fail_worker(ME, ERROR)}
    assert failed == {final.id: "failed", asked.id: "canceled"}
    for task in (final, asked):
        ended = await store.get(task.id)
        assert ended is not None
        assert (ended.error, ended.worker_id, ended.run_at_ms) == (ERROR, ME, task.run_at_ms)
    assert broken_rules(database) == []


async def test_a_lapsed_lease_is_left_to_recovery(store: PostgresStore, test_clock: ClockOfDatabase) -> None:
    task = await claimed(store)
    test_clock.advance(LEASE_MS + 1)
    assert await store.fail_worker(ME, ERROR) == []
    assert await store.get(task.id) == task


@pytest.mark.parametrize(("attempt", "window"), [(1, 1000), (2, 2000), (5, 16_000), (6, 30_000), (9, 30_000)])
async def test_the_delay_falls_into_the_upper_half_of_its_window(
    store: PostgresStore, attempt: int, window: int
) -> None:
    tasks = await held(store, 200, attempt=attempt)
    await store.fail_worker(ME, ERROR)
    found = await delays(store, tasks)
    slack = 50  # ms between two readings of the clock in one statement
    assert min(found) >= window / 2 - slack
    assert max(found) < window + slack
    assert len(set(found)) > 20, "they part"
    # The mean of 200 draws of a uniform half window lies within 5 standard errors of its middle.
    assert abs(sum(found) / 200 - 0.75 * window) < 5 * (window / 2) / (12**0.5 * 200**0.5) + slack


async def test_a_window_is_never_used_up(store: PostgresStore) -> None:
    """[w/2, w): of a window of 2 ms that is 1 ms, exactly."""
    tasks = await held(store, 100)
    await store.fail_worker(ME, ERROR, backoff_ms=2)
    found = await delays(store, tasks)
    assert sum(delay == 1 for delay in found) > 90, "but for a reading of the clock in between"


async def test_a_base_of_nothing_turns_the_backoff_off(store: PostgresStore) -> None:
    await held(store, 3)
    await store.fail_worker(ME, ERROR, backoff_ms=0)
    assert len(await store.claim(["crash"], ME, limit=10)) == 3


async def test_a_huge_attempt_has_a_window_like_any_other(store: PostgresStore) -> None:
    tasks = await held(store, 1, attempt=1)
    await store.fail_worker(ME, ERROR, backoff_ms=2**40, backoff_max_ms=2**41)
    assert 2**39 - 50 <= (await delays(store, tasks))[0] < 2**40 + 50


@pytest.mark.parametrize("wrong", [{"backoff_ms": -1}, {"backoff_max_ms": -1}, {"backoff_ms": 0.5}])
async def test_a_backoff_of_nonsense_is_refused(store: PostgresStore, wrong: dict[str, int]) -> None:
    task = await claimed(store)
    with pytest.raises(InvalidArgument, match=next(iter(wrong))):
        await store.fail_worker(ME, ERROR, **wrong)
    assert await store.get(task.id) == task
