"""Races for a key, from several stores at once: one task stands under it at every moment, and nobody fails for it."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from cairnq import AlreadyExists, PostgresStore, Task
from tests.store.conftest import OpenStore
from tests.support.tasks import ME, broken_rules

STORES = 4
ROUNDS = 30


@pytest.fixture
async def stores(store: PostgresStore, open_store: OpenStore) -> list[PostgresStore]:
    return [store, *[await open_store() for _ in range(STORES - 1)]]


async def live(store: PostgresStore, key: str) -> list[Task]:
    """Every live task that was ever submitted under the key (they carry it as their name)."""
    return [task for task in await store.list(name=key, limit=1000) if not task.is_terminal]


@pytest.mark.parametrize("conflict", ["reuse", "reuse-succeeded"])
async def test_sixteen_submits_are_one_task(stores: list[PostgresStore], conflict: Any) -> None:
    for number in range(ROUNDS):
        key = f"k{number}"
        submits = (stores[i % STORES].submit(key, i, key=key, conflict=conflict) for i in range(16))
        tasks = await asyncio.gather(*submits)
        assert tasks == [tasks[0]] * 16
        assert await live(stores[0], key) == [tasks[0]]


async def test_one_of_sixteen_is_not_rejected(stores: list[PostgresStore]) -> None:
    for number in range(ROUNDS):
        key = f"k{number}"
        submits = (stores[i % STORES].submit(key, key=key, conflict="reject") for i in range(16))
        outcomes = await asyncio.gather(*submits, return_exceptions=True)
        [winner] = [outcome for outcome in outcomes if isinstance(outcome, Task)]
        assert sum(isinstance(outcome, AlreadyExists) for outcome in outcomes) == 15
        assert await stores[0].get_by_key(key) == winner


async def test_the_last_of_sixteen_replacements_stands(stores: list[PostgresStore], database: str) -> None:
    for number in range(ROUNDS // 3):
        key = f"k{number}"
        submits = (stores[i % STORES].submit(key, key=key, conflict="replace") for i in range(16))
        tasks = await asyncio.gather(*submits)
        assert len({task.id for task in tasks}) == 16
        standing = await stores[0].get_by_key(key)
        assert await live(stores[0], key) == [standing]
    assert broken_rules(database) == []


async def test_batches_of_the_same_keys_in_any_order_do_not_deadlock(stores: list[PostgresStore]) -> None:
    rng = random.Random(7)
    for number in range(ROUNDS):
        keys = [f"{number}/{i}" for i in range(10)]
        orders = [keys, keys[::-1], rng.sample(keys, 10), rng.sample(keys, 10)]
        conflicts = ("replace", "reuse", "reuse-succeeded", "replace")
        batches = (
            store.submit_many([{"name": key, "key": key, "conflict": conflict} for key in order])
            for store, order, conflict in zip(stores, orders, conflicts, strict=True)
        )
        answers = await asyncio.gather(*batches)
        assert [[task.name for task in tasks] for tasks in answers] == orders
        for key in keys[:2]:
            assert await live(stores[0], key) == [await stores[0].get_by_key(key)]


async def test_submits_cancels_and_retries_meet_at_a_key(stores: list[PostgresStore], database: str) -> None:
    for number in range(ROUNDS):
        key = f"k{number}"
        await stores[0].submit(key, key=key)
        await asyncio.gather(
            stores[0].submit(key, key=key, conflict="replace"),
            stores[1].cancel_by_key(key),
            stores[2].retry_by_key(key),
            stores[3].submit(key, key=key),
            stores[1].retry_by_key(key, reset_attempt=True),
        )
        standing = await stores[0].get_by_key(key)
        assert standing is not None
        assert await live(stores[0], key) in ([], [standing])
    assert broken_rules(database) == []


async def test_a_purge_and_a_submit_meet_at_a_key(stores: list[PostgresStore], database: str) -> None:
    for number in range(ROUNDS):
        key = f"k{number}"
        await stores[0].submit(key, key=key)
        await stores[0].cancel_by_key(key)
        new, again, _, _ = await asyncio.gather(
            stores[0].submit(key, key=key), stores[1].submit(key, key=key), stores[2].purge(), stores[3].purge()
        )
        assert new == again == await stores[0].get_by_key(key)
    assert broken_rules(database) == []


async def test_an_end_and_a_replacement_meet_at_a_key(stores: list[PostgresStore], database: str) -> None:
    for number in range(ROUNDS):
        key = f"k{number}"
        await stores[0].submit(key, key=key, queue=key)
        [running] = await stores[0].claim([key], ME)
        ended, new = await asyncio.gather(
            stores[0].complete(running.id, ME, "r"), stores[1].submit(key, key=key, conflict="replace")
        )
        assert ended.status in ("succeeded", "canceled")
        assert await stores[0].get_by_key(key) == new
        assert await live(stores[0], key) == [new]
    assert broken_rules(database) == []
