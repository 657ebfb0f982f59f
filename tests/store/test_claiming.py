"""Claims: in order, of one's own names, once each, and inside one transaction where a worker draws by name."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from cairnq import InvalidArgument, PostgresStore, Task
from cairnq.pure.ids import new_worker_id
from cairnq.store.base import Draw
from tests.support.clock import ClockOfDatabase
from tests.support.cluster import Cluster, name_of
from tests.support.tasks import ERROR, LEASE_MS, ME, claimed


def names_of(tasks: Sequence[Task]) -> list[str]:
    return [task.name for task in tasks]


async def test_the_order_is_priority_then_due_time_then_id(store: PostgresStore, test_clock: ClockOfDatabase) -> None:
    for name, priority, delay in [("e", -1, 0), ("d", 0, 200), ("c", 0, 100), ("a", 5, 300), ("b", 0, 0)]:
        await store.submit(name, priority=priority, run_at_delay_ms=delay)
    test_clock.advance(1000)
    assert names_of(await store.claim(["default"], ME, limit=10)) == ["a", "b", "c", "d", "e"]
    many = await store.submit_many([{"name": str(number)} for number in range(50)])
    assert await store.claim(["default"], ME, limit=50) == [
        task for submitted in many for task in [await store.get(submitted.id)] if task is not None
    ]


async def test_a_limit_takes_the_first(store: PostgresStore) -> None:
    await store.submit_many([{"name": str(number), "priority": number} for number in range(10)])
    assert names_of(await store.claim(["default"], ME, limit=3)) == ["9", "8", "7"]
    assert names_of(await store.claim(["default"], ME, limit=100)) == ["6", "5", "4", "3", "2", "1", "0"]
    assert await store.claim(["default"], ME) == []


async def test_a_delayed_task_is_not_claimed_before_it_is_due(
    store: PostgresStore, test_clock: ClockOfDatabase
) -> None:
    await store.submit("later", priority=100, run_at_delay_ms=60_000)
    await store.submit("now")
    assert names_of(await store.claim(["default"], ME, limit=10)) == ["now"]
    test_clock.advance(60_000)
    assert names_of(await store.claim(["default"], ME, limit=10)) == ["later"]


async def test_only_the_callers_queues_and_names_are_taken(store: PostgresStore) -> None:
    for queue in ("one", "two", "three"):
        for name in ("a", "b"):
            await store.submit(f"{queue}.{name}", queue=queue)
    assert names_of(await store.claim(["one"], ME, limit=10, names=["one.b", "two.a"])) == ["one.b"]
    assert sorted(names_of(await store.claim(["one", "two"], ME, limit=10))) == ["one.a", "two.a", "two.b"]
    assert await store.claim(["one", "two"], ME, limit=10, names=["three.a"]) == []


async def test_several_queues_share_one_order(store: PostgresStore) -> None:
    for number in range(6):
        await store.submit(str(number), queue="even" if number % 2 == 0 else "odd", priority=number)
    for names in (None, ["0", "1", "2", "3", "4", "5"]):
        taken = await store.claim(["even", "odd"], ME, limit=3, names=names)
        assert names_of(taken) == (["5", "4", "3"] if names is None else ["2", "1", "0"])


async def test_claims_at_once_never_share_a_task(store: PostgresStore) -> None:
    submitted = await store.submit_many([{"name": "x", "priority": number % 3} for number in range(300)])
    takers = [new_worker_id() for _ in range(8)]

    async def take(worker_id: str) -> list[Task]:
        taken: list[Task] = []
        while some := await store.claim(["default"], worker_id, limit=7):
            taken += some
        return taken

    hauls = await asyncio.gather(*(take(worker_id) for worker_id in takers))
    assert sorted(task.id for haul in hauls for task in haul) == sorted(task.id for task in submitted)
    assert all(task.worker_id == worker for worker, haul in zip(takers, hauls, strict=True) for task in haul)


@pytest.mark.postgres
async def test_a_row_that_somebody_has_locked_is_passed_over(
    store: PostgresStore, server: Cluster, database: str
) -> None:
    locked, free = await store.submit("x"), await store.submit("x")
    with server.connect(name_of(database)) as connection, connection.transaction():
        connection.execute("select from cairnq_tasks where id = %s for update", [locked.id])
        assert [task.id for task in await store.claim(["default"], ME, limit=2)] == [free.id]
    assert [task.id for task in await store.claim(["default"], ME, limit=2)] == [locked.id]


# --- drawing inside one transaction ------------------------------------------------------------------------


async def test_a_session_draws_by_name_and_returns_what_its_plan_does(store: PostgresStore) -> None:
    await store.submit_many([{"name": name} for name in "aaabbc"])

    async def plan(draw: Draw) -> list[list[str]]:
        return [
            names_of(await draw(["a"], 2)),
            names_of(await draw(["b"], 5)),
            names_of(await draw(None, 1)),
            names_of(await draw(["c"], 0)),
        ]

    assert await store.claim_session(["default"], ME, 30_000, None, plan) == [["a", "a"], ["b", "b"], ["a"], []]
    assert (await store.stats())["default"]["running"] == 5


async def test_a_session_with_nothing_due_does_not_ask_its_plan(store: PostgresStore) -> None:
    async def plan(draw: Draw) -> Any:
        raise AssertionError("nothing is due")

    assert await store.claim_session(["default"], ME, 30_000, None, plan) is None
    await store.submit("x", run_at_delay_ms=60_000)
    await store.submit("foreign")
    assert await store.claim_session(["default"], ME, 30_000, ["x"], plan) is None
    assert await store.claim_session(["default"], ME, 30_000, [], plan) is None


async def test_a_plan_that_raises_has_claimed_nothing(store: PostgresStore) -> None:
    task = await store.submit("x")

    class Unsure(Exception):
        pass

    async def plan(draw: Draw) -> None:
        assert await draw(None, 1)
        raise Unsure

    with pytest.raises(Unsure):
        await store.claim_session(["default"], ME, 30_000, None, plan)
    assert await store.get(task.id) == task


# --- recovery ------------------------------------------------------------------------------------------------


async def test_recovery_takes_all_queues_and_owners_in_batches(
    store: PostgresStore, test_clock: ClockOfDatabase
) -> None:
    await store.submit_many([{"name": "x", "queue": f"q{number % 3}"} for number in range(25)])
    for queue in ("q0", "q1", "q2"):
        await store.claim([queue], new_worker_id(), 1000, limit=10)
    assert await store.recover() == 0
    test_clock.advance(1001)
    assert [await store.recover(10) for _ in range(4)] == [10, 10, 5, 0]
    assert all(counts["queued"] in (8, 9) for counts in (await store.stats()).values())


async def test_two_recoveries_at_once_count_each_task_once(store: PostgresStore, test_clock: ClockOfDatabase) -> None:
    await store.submit_many([{"name": "x"} for _ in range(200)])
    await store.claim(["default"], ME, 1000, limit=200)
    test_clock.advance(1001)
    recovered = 0
    while some := sum(await asyncio.gather(*(store.recover(50) for _ in range(4)))):
        recovered += some
    assert recovered == 200
    again = await store.claim(["default"], ME, limit=200)
    assert {task.attempt for task in again} == {2}


async def test_a_failed_task_is_claimed_again_after_its_backoff(
    store: PostgresStore, test_clock: ClockOfDatabase
) -> None:
    await store.submit("x")
    [first] = await store.claim(["default"], ME)
    await store.fail(first.id, ME, ERROR, delay_ms=5000)
    assert await store.claim(["default"], ME) == []
    test_clock.advance(5000)
    [second] = await store.claim(["default"], ME)
    assert (second.id, second.attempt, second.error) == (first.id, 2, ERROR)


async def test_a_queue_or_name_given_twice_is_given_once(store: PostgresStore) -> None:
    await store.submit_many([{"name": name} for name in ("a", "b") * 4])
    await store.submit("foreign", priority=1)
    assert len(await store.claim(["default", "default"], ME, limit=4, names=["a", "b", "a"])) == 4
    assert len(await store.claim(["default", "other", "default"], ME, limit=4, names=["b", "b", "a", "a"])) == 4
    await store.submit_many([{"name": "c"} for _ in range(3)])
    assert len(await store.claim(["default", "default"], ME, limit=4)) == 4


async def test_a_claim_that_cannot_be_right_changes_nothing(store: PostgresStore, test_clock: ClockOfDatabase) -> None:
    """Not even by the recovery that comes before it."""
    lapsed = await claimed(store)
    test_clock.advance(LEASE_MS + 1)
    sibling = store.sibling()
    assert sibling is not None
    for wrong in ({"lease_ms": "30000"}, {"lease_ms": 0}, {"limit": -1}, {"limit": 1.0}, {"names": [""]}):
        with pytest.raises(InvalidArgument, match=next(iter(wrong))):
            await sibling.claim(["default"], ME, **{"lease_ms": LEASE_MS, **wrong})
    with pytest.raises(InvalidArgument, match="lease_ms"):
        await sibling.claim_session(["default"], ME, -1, None, plan_nothing)
    assert await store.get(lapsed.id) == lapsed
    await sibling.close()


async def plan_nothing(draw: Draw) -> None:
    raise AssertionError("no plan is asked")


@pytest.mark.parametrize("limit", [-1, 1.5, True, "1"])
async def test_a_draw_that_cannot_be_right_is_refused(store: PostgresStore, limit: Any) -> None:
    task = await store.submit("x")

    async def plan(draw: Draw) -> list[Task]:
        return await draw(None, limit)

    with pytest.raises(InvalidArgument, match="limit"):
        await store.claim_session(["default"], ME, LEASE_MS, None, plan)
    assert await store.get(task.id) == task


async def test_the_value_of_a_plan_comes_back_whatever_it_is(store: PostgresStore) -> None:
    await store.submit_many([{"name": "x"} for _ in range(6)])

    async def plan(draw: Draw) -> tuple[int, int, int]:
        return len(await draw(["x"], 2)), len(await draw([], 5)), len(await draw(None, 0)) + len(await draw(None, 3))

    assert await store.claim_session(["default"], ME, LEASE_MS, None, plan) == (2, 0, 3)
    assert (await store.stats())["default"]["running"] == 5


async def test_a_plan_draws_within_what_the_session_was_opened_for(store: PostgresStore) -> None:
    """Without names of its own a draw takes the session's, never everybody's."""
    await store.submit("foreign", priority=9)
    mine = await store.submit("mine")

    async def plan(draw: Draw) -> list[Task]:
        return await draw(None, 10)

    drawn = await store.claim_session(["default"], ME, LEASE_MS, ["mine"], plan)
    assert drawn is not None
    assert [task.id for task in drawn] == [mine.id]


async def test_recovery_is_asked_for_a_number_of_rows(store: PostgresStore) -> None:
    for wrong in (-1, 1.5, True):
        with pytest.raises(InvalidArgument, match="limit"):
            await store.recover(wrong)  # type: ignore[arg-type]
    assert await store.recover(0) == 0
