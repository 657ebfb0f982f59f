"""A key points at one current task: PROTOCOL's table of conflicts, and races for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cairnq import AlreadyExists, InvalidArgument, PostgresStore
from cairnq.pure.models import CONFLICTS
from cairnq.store.submitting import MAX_KEYS
from tests.support.tasks import ME, broken_rules, in_state

STATES = ("queued", "running", "succeeded", "failed", "canceled")
OLD, NEW, REFUSED = "the old one", "a new one", "AlreadyExists"

#                       queued   running  succeeded failed   canceled
OUTCOMES = {
    "reuse":           (OLD,     OLD,     NEW,      NEW,     NEW),
    "reuse-succeeded": (OLD,     OLD,     OLD,      NEW,     NEW),
    "reject":          (REFUSED, REFUSED, REFUSED,  REFUSED, REFUSED),
    "replace":         (NEW,     NEW,     NEW,      NEW,     NEW),
}  # fmt: skip


@pytest.mark.parametrize("conflict", CONFLICTS)
async def test_each_conflict_against_each_state(store: PostgresStore, database: str, conflict: Any) -> None:
    outcomes = []
    for state in STATES:
        old = await in_state(store, state, key=state)
        try:
            answer = await store.submit("x", {"n": 2}, key=state, conflict=conflict)
        except AlreadyExists as error:
            assert error.key == state
            outcomes.append(REFUSED)
            current = old.id
        else:
            outcomes.append(OLD if answer.id == old.id else NEW)
            current = answer.id
        standing = await store.get_by_key(state)
        assert standing is not None
        assert standing.id == current
    assert outcomes == list(OUTCOMES[conflict]), dict(zip(STATES, outcomes, strict=True))
    assert broken_rules(database) == []


async def test_a_replaced_task_is_canceled_where_it_was_live(store: PostgresStore) -> None:
    after = {}
    for state in STATES:
        old = await in_state(store, state, key=state)
        await store.submit("x", key=state, conflict="replace")
        task = await store.get(old.id)
        assert task is not None
        after[state] = task
    assert after["queued"].status == "canceled"
    assert (after["running"].status, after["running"].cancel_requested) == ("running", True)
    assert [after[state].status for state in STATES[2:]] == list(STATES[2:])


async def test_a_purged_task_leaves_its_key_free(store: PostgresStore) -> None:
    old = await in_state(store, "succeeded", key="k")
    assert await store.purge() == [old.id]
    assert await store.get_by_key("k") is None
    assert (await store.submit("x", key="k", conflict="reject")).id != old.id


async def test_a_race_for_a_key_has_one_winner(store: PostgresStore) -> None:
    tasks = await asyncio.gather(*(store.submit("x", key="k") for _ in range(12)))
    assert len({task.id for task in tasks}) == 1
    outcomes = await asyncio.gather(
        *(store.submit("x", key="r", conflict="reject") for _ in range(12)), return_exceptions=True
    )
    assert sum(isinstance(outcome, AlreadyExists) for outcome in outcomes) == 11
    assert (await store.stats())["default"]["queued"] == 2


async def test_replacing_races_leave_one_live_task(store: PostgresStore) -> None:
    await asyncio.gather(*(store.submit("x", key="k", conflict="replace") for _ in range(12)))
    counts = (await store.stats())["default"]
    assert (counts["queued"], counts["canceled"]) == (1, 11)
    standing = await store.get_by_key("k")
    assert standing is not None
    assert standing.queued


async def test_keys_of_one_batch_are_decided_in_order(store: PostgresStore) -> None:
    first, second, third = await store.submit_many(
        [
            {"name": "a", "key": "k"},
            {"name": "b", "key": "k"},
            {"name": "c", "key": "k", "conflict": "replace"},
        ]
    )
    assert second.id == first.id
    assert (first.name, third.name) == ("a", "c")
    standing = await store.get_by_key("k")
    assert standing is not None
    assert standing.id == third.id
    replaced = await store.get(first.id)
    assert replaced is not None
    assert replaced.canceled


async def test_a_batch_that_meets_a_refusal_inserts_nothing(store: PostgresStore) -> None:
    await store.submit("x", key="k")
    with pytest.raises(AlreadyExists):
        await store.submit_many([{"name": "a"}, {"name": "b", "key": "k", "conflict": "reject"}])
    assert (await store.stats())["default"]["queued"] == 1


async def test_batches_with_the_same_keys_in_other_orders_do_not_deadlock(store: PostgresStore) -> None:
    keys = [f"key {number}" for number in range(20)]
    forth = [{"name": "x", "key": key, "conflict": "replace"} for key in keys]
    back = list(reversed(forth))
    await asyncio.gather(*(store.submit_many(items) for items in (forth, back) * 4))
    assert (await store.stats())["default"]["queued"] == 20


async def test_by_key_calls_follow_the_key(store: PostgresStore) -> None:
    task = await store.submit("x", key="k")
    canceled = await store.cancel_by_key("k")
    assert canceled is not None
    assert (canceled.id, canceled.status) == (task.id, "canceled")
    retried = await store.retry_by_key("k", reset_attempt=True)
    assert retried is not None
    assert (retried.id, retried.status) == (task.id, "queued")
    ref = await store.get_status_by_key("k")
    assert ref is not None
    assert (ref.id, ref.is_terminal) == (task.id, False)
    assert [await call("none") for call in (store.cancel_by_key, store.retry_by_key, store.get_by_key)] == [None] * 3


async def test_a_key_is_free_text(store: PostgresStore) -> None:
    for key in ("k'; drop table cairnq_tasks; --", "ключ ✓", "%s $1 :x", " ", "\\"):
        task = await store.submit("x", key=key)
        standing = await store.get_by_key(key)
        assert standing is not None
        assert standing.id == task.id
    for wrong in ("", "a\x00b", "k" * 1001):
        with pytest.raises(InvalidArgument, match="key"):
            await store.submit("x", key=wrong)
    assert len(await store.claim(["default"], ME, limit=100)) == 5


@pytest.mark.postgres  # on SQLite a key is no lock
async def test_more_keys_than_a_server_has_locks_for_are_refused(store: PostgresStore) -> None:
    items = [{"name": "x", "key": f"k{number}"} for number in range(MAX_KEYS + 1)]
    with pytest.raises(InvalidArgument, match=f"{MAX_KEYS + 1} keys .* at most {MAX_KEYS}: split"):
        await store.submit_many(items)
    assert await store.list() == []


async def test_it_is_keys_that_are_counted_and_not_items(store: PostgresStore) -> None:
    tasks = await store.submit_many([{"name": "x", "key": "k"}] * (MAX_KEYS + 1))
    assert len({task.id for task in tasks}) == 1
