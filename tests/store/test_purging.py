"""Finished tasks leave: by age, by filter, by limit, their keys with them; the living stay."""

from __future__ import annotations

import asyncio

import pytest

from cairnq import PostgresStore
from tests.support.clock import ClockOfDatabase
from tests.support.tasks import ERROR, ME, SOMEBODY, claimed, in_state

STATES = ("queued", "running", "cancel asked", "succeeded", "failed", "canceled")


async def test_only_the_finished_leave(store: PostgresStore) -> None:
    tasks = {state: await in_state(store, state) for state in STATES}
    assert set(await store.purge()) == {tasks[state].id for state in ("succeeded", "failed", "canceled")}
    assert [state for state in STATES if await store.get(tasks[state].id)] == ["queued", "running", "cancel asked"]
    assert await store.purge() == []


async def test_the_age_counts_from_the_end(store: PostgresStore, test_clock: ClockOfDatabase) -> None:
    task = await claimed(store)
    test_clock.advance(20_000)
    await store.complete(task.id, ME, None)
    test_clock.advance(9_000)
    assert await store.purge(older_than_ms=10_000) == []
    test_clock.advance(1_000)
    assert await store.purge(older_than_ms=10_000) == [task.id]


@pytest.mark.parametrize(
    ("filters", "leaving"),
    [
        ({"status": "failed"}, {"b failed"}),
        ({"status": "succeeded"}, {"a succeeded", "b succeeded"}),
        ({"queue": "a"}, {"a succeeded", "a canceled"}),
        ({"name": "b failed"}, {"b failed"}),
        ({"queue": "a", "status": "succeeded"}, {"a succeeded"}),
        ({"queue": "a", "status": "failed"}, set()),
        ({"queue": "a", "name": "a canceled", "status": "canceled"}, {"a canceled"}),
        ({"queue": "none"}, set()),
    ],
)
async def test_filters_narrow_it_together(store: PostgresStore, filters: dict[str, str], leaving: set[str]) -> None:
    names = {}
    for name in ("a succeeded", "a canceled", "b succeeded", "b failed", "b queued"):
        queue, state = name.split()
        task = await store.submit(name, queue=queue)
        names[task.id] = name
        if state != "queued":
            await store.claim([queue], ME)
        match state:
            case "succeeded":
                await store.complete(task.id, ME, None)
            case "failed":
                await store.fail(task.id, ME, ERROR, retryable=False)
            case "canceled":
                await store.cancel(task.id)
                await store.complete(task.id, ME, None)
    assert {names[task_id] for task_id in await store.purge(**filters)} == leaving
    assert {task.name for task in await store.list()} == set(names.values()) - leaving


async def test_a_limit_takes_the_oldest_of_a_status(store: PostgresStore) -> None:
    tasks = [await in_state(store, "succeeded") for _ in range(5)]
    assert sorted(await store.purge(limit=2)) == [task.id for task in tasks[:2]]
    assert sorted(await store.purge(limit=2)) == [task.id for task in tasks[2:4]]
    assert await store.purge(limit=2) == [tasks[4].id]


async def test_a_limit_bounds_all_statuses_together(store: PostgresStore) -> None:
    for state in ("succeeded", "failed", "canceled") * 2:
        await in_state(store, state)
    assert [len(await store.purge(limit=4)), len(await store.purge(limit=4))] == [4, 2]


async def test_a_key_goes_with_its_task_and_no_other(store: PostgresStore) -> None:
    old = await in_state(store, "succeeded", key="repointed")
    new = await store.submit("x", key="repointed")
    await in_state(store, "failed", key="alone")
    assert len(await store.purge()) == 2
    assert await store.get(old.id) is None
    assert await store.get_status_by_key("alone") is None
    standing = await store.get_status_by_key("repointed")
    assert standing is not None
    assert standing.id == new.id


async def test_a_task_retried_meanwhile_survives(store: PostgresStore) -> None:
    for _ in range(20):
        tasks = [await in_state(store, "failed") for _ in range(5)]
        purged, *retried = await asyncio.gather(store.purge(), *(store.retry(task.id) for task in tasks))
        survivors = {task.id for task in retried if task is not None}
        assert survivors.isdisjoint(purged)
        assert survivors | set(purged) == {task.id for task in tasks}
        for task_id in survivors:
            task = await store.get(task_id)
            assert task is not None
            assert task.queued


async def test_purges_at_once_share_the_work(store: PostgresStore) -> None:
    tasks = [await in_state(store, "canceled") for _ in range(40)]
    purged = await asyncio.gather(*(store.purge(limit=10) for _ in range(8)))
    found = [task_id for ids in purged for task_id in ids]
    assert sorted(found) == sorted(set(found))
    left = await store.purge()
    assert sorted(found + left) == [task.id for task in tasks]


async def test_what_another_worker_runs_is_never_purged(store: PostgresStore) -> None:
    task = await claimed(store, SOMEBODY)
    assert await store.purge() == []
    assert await store.get(task.id) == task
