"""Settlements and the next claim in one transaction: both happen, or neither, and each row is judged as by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from cairnq import DatabaseUnavailable, Outcome, PostgresStore, Settlement, Task
from cairnq.db.session import PipelinedSession
from cairnq.pure.models import ClaimedTask
from tests.store.postgres.executors import opened
from tests.support.tasks import LEASE_MS, ME, SOMEBODY

QUEUE = "exchange"
Exchanged = tuple[list[Any], list[ClaimedTask]]


async def running(store: PostgresStore, count: int, **options: object) -> list[Task]:
    """Tasks of mine."""
    await store.submit_many([{"name": "x", "queue": QUEUE, **options} for _ in range(count)])
    return await store.claim([QUEUE], ME, LEASE_MS, limit=count)


async def exchange(
    store: PostgresStore, settlements: Sequence[Settlement], *, limit: int = 10, names: Sequence[str] | None = ("x",)
) -> Exchanged | None:
    return await store.settle_and_claim(ME, settlements, [QUEUE], LEASE_MS, limit, names)


def complete(task: Task, result: object = None, *, forget: bool = False) -> Settlement:
    return Settlement.complete(task.id, task.attempt, result, forget=forget)


@pytest.mark.parametrize("names", [None, ("x",)], ids=["any name", "a name"])
async def test_both_are_one_transaction(store: PostgresStore, database: str, names: Sequence[str] | None) -> None:
    mine = await running(store, 2)
    waiting = [await store.submit("x", number, queue=QUEUE) for number in range(3)]
    done = await exchange(store, [complete(mine[0], "r"), complete(mine[1])], limit=2, names=names)
    assert done is not None
    statuses, claimed = done
    assert statuses == ["succeeded", "succeeded"]
    assert [(item.task.id, item.task.payload, item.payload_bytes) for item in claimed] == [
        (task.id, number, 1) for number, task in enumerate(waiting[:2])
    ]
    assert (await store.get(mine[0].id)).result == "r"  # type: ignore[union-attr]
    async with await psycopg.AsyncConnection.connect(database) as connection:
        rows = await connection.execute(
            "select count(distinct xmin::text), count(*) from cairnq_tasks where status in ('running', 'succeeded')"
        )
        assert await rows.fetchone() == (1, 4)


async def test_each_settlement_is_judged_by_itself(store: PostgresStore) -> None:
    lost, kept, removed, mine = await running(store, 4)
    await store.submit("x", queue=QUEUE, key="k")
    [keyed] = await store.claim([QUEUE], ME, LEASE_MS)
    await store.fail(lost.id, ME, {"message": "mine no more"}, retryable=False)
    await store.cancel(kept.id)
    done = await exchange(
        store,
        [
            complete(lost, forget=True),
            complete(removed, forget=True),
            complete(mine),
            complete(kept, forget=True),
            complete(keyed, {"r": 1}, forget=True),
        ],
    )
    assert done == ([None, "succeeded", "succeeded", "canceled", "succeeded"], [])
    assert await store.get(removed.id) is None
    assert (await store.get_by_key("k")).result == {"r": 1}  # type: ignore[union-attr]


async def test_a_refused_body_undoes_both(store: PostgresStore) -> None:
    good, bad = await running(store, 2)
    waiting = await store.submit("x", queue=QUEUE)
    refused = Settlement(bad.id, bad.attempt, Outcome.COMPLETE, "{not json")
    for _ in range(2):  # also once its statements are prepared
        assert await exchange(store, [complete(good), refused]) is None
        assert [(await store.get(task.id)).status for task in (good, bad, waiting)] == ["running", "running", "queued"]  # type: ignore[union-attr]
    assert await store.settle_many(ME, [complete(good), refused]) == ["succeeded", "failed"]
    assert len(await store.claim_many([QUEUE], ME, LEASE_MS, 1, ["x"])) == 1


async def test_two_attempts_of_a_task_do_not_go_together(store: PostgresStore) -> None:
    [mine] = await running(store, 1)
    assert await exchange(store, [complete(mine), Settlement.release(mine.id, 2, started=False)]) is None
    assert await exchange(store, []) is None
    assert (await store.get(mine.id)).status == "running"  # type: ignore[union-attr]


async def test_what_somebody_else_runs_stays_theirs(store: PostgresStore) -> None:
    await store.submit("x", queue=QUEUE)
    [theirs] = await store.claim([QUEUE], SOMEBODY, LEASE_MS)
    assert await exchange(store, [complete(theirs)]) == ([None], [])
    assert await store.get(theirs.id) == theirs


async def test_over_a_callers_executor_there_is_no_such_thing(store: PostgresStore, database: str) -> None:
    [mine] = await running(store, 1)
    async with opened(database, "tuples") as executor:
        over = PostgresStore(executor)
        assert not over.exchanges
        assert await exchange(over, [complete(mine)]) is None
    assert store.exchanges


async def test_a_connection_that_is_lost_is_told_of(store: PostgresStore) -> None:
    [mine] = await running(store, 1)
    with pytest.raises(DatabaseUnavailable):
        await _lose_a_connection(store)
    assert await exchange(store, [complete(mine)]) == (["succeeded"], [])


async def _lose_a_connection(store: PostgresStore) -> None:
    async with store._autocommit() as bound:
        assert isinstance(bound.session, PipelinedSession)
        await bound.session.together([("select 1", []), ("select pg_terminate_backend(pg_backend_pid())", [])])
