"""What a submit writes: every column as given or by default, alone and in a batch."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest

from cairnq import CairnQ, PostgresStore, Task, TaskDef
from tests.store.helpers import about

DEFAULTS: dict[str, Any] = {
    "name": "x",
    "queue": "default",
    "status": "queued",
    "payload": {},
    "result": None,
    "error": None,
    "metadata": {},
    "progress": None,
    "message": None,
    "attempt": 0,
    "max_attempts": 3,
    "priority": 0,
    "worker_id": None,
    "lease_until_ms": None,
    "cancel_requested_at_ms": None,
    "parent_id": None,
    "correlation_id": None,
    "completed_at_ms": None,
}

GIVEN: dict[str, Any] = {
    "queue": "q",
    "max_attempts": 7,
    "priority": -5,
    "metadata": {"m": [1]},
    "parent_id": "task_parent",
    "root_id": "task_root",
    "correlation_id": "c",
}


def columns(task: Task, names: Any) -> dict[str, Any]:
    return {name: getattr(task, name) for name in names}


async def test_the_defaults_are_the_protocols(client: CairnQ) -> None:
    task = await client.submit("x")
    assert columns(task, DEFAULTS) == DEFAULTS
    assert re.fullmatch(r"task_[0-9A-HJKMNP-TV-Z]{26}", task.id)
    assert task.root_id == task.id
    assert task.created_at_ms == task.updated_at_ms == task.run_at_ms
    assert len(fields(Task)) == len(DEFAULTS) + len({"id", "root_id", "created", "updated", "run_at"})


async def test_what_is_given_is_what_stands(client: CairnQ) -> None:
    task = await client.submit("x", [1, {"a": None}], **GIVEN)
    assert columns(task, GIVEN) == GIVEN
    assert task.payload == [1, {"a": None}]


@pytest.mark.parametrize("options", [{}, GIVEN, {"key": "k"}, {**GIVEN, "key": "k"}, {"run_at_delay_ms": 5000}])
async def test_the_task_returned_is_the_row_alone_and_in_a_batch(store: PostgresStore, options: dict[str, Any]) -> None:
    alone = await store.submit("x", "p", **options)
    assert await store.get(alone.id) == alone
    if "key" in options:
        options = {**options, "key": "another"}
    count = 1 if "key" in options else 3
    batch = await store.submit_many([{"name": "x", "payload": number, **options} for number in range(count)])
    for number, task in enumerate(batch):
        assert await store.get(task.id) == task
        assert task.payload == number
        same = set(DEFAULTS) - {"payload"}
        assert columns(task, same) == columns(alone, same)


async def test_each_item_of_a_batch_keeps_its_own_values(store: PostgresStore) -> None:
    items = [
        {"name": "x"},
        {"name": "y", "delay_ms": 5000, **GIVEN},
        {"name": "z", "delay_ms": 7, "metadata": {"é": 1}},
    ]
    tasks = await store.submit_many(items)
    assert [await store.get(task.id) for task in tasks] == tasks
    assert [task.run_at_ms - task.created_at_ms for task in tasks] == [0, 5000, 7]
    assert [(task.name, task.metadata) for task in tasks] == [("x", {}), ("y", GIVEN["metadata"]), ("z", {"é": 1})]


@pytest.mark.parametrize("spelling", ["delay_ms", "run_at_delay_ms"])
async def test_a_delay_is_from_the_databases_now_in_both_spellings(client: CairnQ, spelling: str) -> None:
    task = await client.submit("x", **{spelling: 60_000})
    assert task.run_at_ms - task.created_at_ms == about(60_000)
    [many] = await client.submit_many([{"name": "x", spelling: 60_000}])
    assert many.run_at_ms - many.created_at_ms == about(60_000)


async def test_a_definition_stands_for_its_name(client: CairnQ) -> None:
    resize: TaskDef[dict[str, int], str] = TaskDef("resize")
    assert (await client.submit(resize, {"w": 1})).name == "resize"
    assert [task.name for task in await client.submit_many([{"name": resize}])] == ["resize"]


async def test_ids_rise_in_the_order_of_submits(store: PostgresStore) -> None:
    tasks = [await store.submit("x") for _ in range(20)] + await store.submit_many([{"name": "x"}] * 20)
    assert [task.id for task in tasks] == sorted({task.id for task in tasks})


async def test_a_batch_answers_in_order_and_is_one_moment(store: PostgresStore) -> None:
    tasks = await store.submit_many([{"name": "x", "payload": number, "priority": -number} for number in range(1000)])
    assert [task.payload for task in tasks] == list(range(1000))
    assert len({task.created_at_ms for task in tasks}) == 1


async def test_a_batch_with_one_bad_item_inserts_nothing(store: PostgresStore) -> None:
    with pytest.raises(ValueError, match="max_attempts"):
        await store.submit_many([{"name": "x"}, {"name": "x", "max_attempts": 0}])
    assert await store.stats() == {}


async def test_the_largest_names_fit_their_indexes(store: PostgresStore) -> None:
    long = "é" * 500
    task = await store.submit(long, queue=long, key=long, correlation_id=long, root_id=long)
    assert await store.get(task.id) == task
    assert await store.list(queue=long, name=long, correlation_id=long, root_id=long) == [task]
    unlike = "".join(chr(0x4E00 + number * 7 % 20_000) for number in range(333))  # does not compress
    assert await store.get((await store.submit(unlike, queue=unlike[::-1], key=unlike)).id) is not None


async def test_a_megabyte_crosses(store: PostgresStore) -> None:
    payload = {"blob": "x" * 1_000_000, "list": list(range(50_000))}
    task = await store.submit("x", payload)
    found = await store.get(task.id)
    assert found is not None
    assert found.payload == payload
