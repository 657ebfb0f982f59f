"""Reads: one task, its status alone, lists with filters, counts, room in a queue."""

from __future__ import annotations

import itertools

import pytest

from cairnq import STATUSES, CairnQ, PostgresStore, Task, TaskRef
from tests.support.tasks import ME, claimed, in_state

STATES = ("queued", "running", "succeeded", "failed", "canceled")


async def test_a_status_alone_is_id_and_status(client: CairnQ, store: PostgresStore) -> None:
    for state in STATES:
        task = await in_state(store, state, key=state)
        expected = TaskRef(task.id, task.status)
        assert await client.get_status(task.id) == expected
        assert await client.get_status_by_key(state) == expected
        assert expected.is_terminal == task.is_terminal == (state in ("succeeded", "failed", "canceled"))
        assert [getattr(task, status) for status in STATUSES] == [status == state for status in STATUSES]


async def test_what_is_not_there_is_none(client: CairnQ) -> None:
    assert await client.get("task_none") is None
    assert await client.get_by_key("none") is None
    assert await client.get_status("task_none") is None
    assert await client.get_status_by_key("none") is None
    assert await client.cancel("task_none") is None
    assert await client.retry("task_none") is None


# --- list -----------------------------------------------------------------------------------------------


async def family(store: PostgresStore) -> list[Task]:
    """Tasks that differ in everything a list filters by, oldest first."""
    root = await store.submit("a", queue="one", correlation_id="c1")
    combinations = itertools.product(("a", "b"), ("one", "two"), (None, "c1", "c2"), (None, root.id))
    tasks = [root]
    for name, queue, correlation, root_id in combinations:
        tasks.append(await store.submit(name, queue=queue, correlation_id=correlation, root_id=root_id))
    for task in tasks[::3]:
        await store.cancel(task.id)
    found = [await store.get(task.id) for task in tasks]
    return [task for task in found if task is not None]


FIELDS = ("status", "queue", "name", "root_id", "correlation_id")


@pytest.mark.parametrize("count", range(len(FIELDS) + 1))
async def test_each_set_of_filters_finds_what_matches_all(store: PostgresStore, count: int) -> None:
    tasks = await family(store)
    sample = tasks[-1]
    assert sample.root_id == tasks[0].id
    for fields in itertools.combinations(FIELDS, count):
        filters = {field: getattr(sample, field) for field in fields}
        expected = [task for task in reversed(tasks) if all(getattr(task, f) == v for f, v in filters.items())]
        assert expected
        assert await store.list(**filters) == expected, filters


async def test_a_root_is_one_of_its_family(store: PostgresStore) -> None:
    tasks = await family(store)
    found = await store.list(root_id=tasks[0].id)
    assert found[-1] == tasks[0]
    assert len(found) == 13
    alone = tasks[1]
    assert alone.root_id == alone.id
    assert await store.list(root_id=alone.id) == [alone]
    assert await store.list(root_id="task_none") == []


async def test_newest_first_and_pages_without_gaps(store: PostgresStore) -> None:
    tasks = await store.submit_many([{"name": "x"} for _ in range(25)])
    newest_first = list(reversed(tasks))
    assert await store.list() == newest_first
    pages = [await store.list(limit=10, offset=offset) for offset in (0, 10, 20, 30)]
    assert [len(page) for page in pages] == [10, 10, 5, 0]
    assert [task for page in pages for task in page] == newest_first


async def test_a_list_has_at_most_a_hundred_by_default(store: PostgresStore) -> None:
    await store.submit_many([{"name": "x"} for _ in range(101)])
    assert len(await store.list()) == 100
    assert len(await store.list(limit=1000)) == 101


@pytest.mark.parametrize(
    "value", ["o'clock", 'a "quoted" one', "back\\slash", "%s %(x)s $1 :name ^status @now_ms", "é✓"]
)
async def test_a_filter_is_a_value_and_never_text_of_the_statement(store: PostgresStore, value: str) -> None:
    task = await store.submit(value, queue=value, correlation_id=value, parent_id=value)
    assert await store.list(name=value, queue=value, correlation_id=value) == [task]
    assert (await store.stats(value))[value]["queued"] == 1
    assert [found.id for found in await store.claim([value], ME, names=[value])] == [task.id]


# --- counts ---------------------------------------------------------------------------------------------


async def test_counts_are_zero_filled(store: PostgresStore) -> None:
    assert await store.stats() == {}
    assert await store.stats("none") == {"none": dict.fromkeys(STATUSES, 0)}
    for state in STATES:
        await in_state(store, state, queue=f"queue of {state}")
    zero = dict.fromkeys(STATUSES, 0)
    assert await store.stats() == {f"queue of {state}": {**zero, state: 1} for state in STATES}
    assert await store.stats("queue of failed") == {"queue of failed": {**zero, "failed": 1}}


async def test_room_counts_what_is_queued_and_stops_at_the_bound(client: CairnQ, store: PostgresStore) -> None:
    assert await client.queue_depth("q", 3) == 3
    await claimed(store, queue="q")
    await store.submit("x", queue="other")
    assert await client.queue_depth("q", 3) == 3, "running and foreign ones take no room"
    await store.submit("x", queue="q", run_at_delay_ms=60_000)
    assert await client.queue_depth("q", 3) == 2, "a delayed one does"
    await store.submit_many([{"name": "x", "queue": "q"} for _ in range(10)])
    assert await client.queue_depth("q", 3) == 0
    assert await client.queue_depth("q", 100) == 89
    assert await client.queue_depth("q", 0) == 0


async def test_the_protocol_has_version_one(store: PostgresStore) -> None:
    assert await store.protocol_version() == 1
