"""`forget`: a success that leaves no row, unless a key points at it; everything else is as without."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from cairnq import CairnQ, PostgresStore, Settlement, Task
from tests.support.clock import ClockOfDatabase
from tests.support.gates import soon
from tests.support.tasks import LEASE_MS, ME, SOMEBODY, claimed, in_state


def forget(task: Task, attempt: int = 1) -> Settlement:
    return Settlement.complete(task.id, attempt, {"r": 1}, forget=True)


async def test_a_success_is_removed(store: PostgresStore) -> None:
    task = await claimed(store)
    assert await store.settle_many(ME, [forget(task)]) == ["succeeded"]
    assert await store.get(task.id) is None
    assert await store.get_status(task.id) is None
    assert await store.stats() == {}


async def test_a_task_under_a_key_is_kept(store: PostgresStore) -> None:
    task = await claimed(store, key="k")
    assert await store.settle_many(ME, [forget(task)]) == ["succeeded"]
    kept = await store.get_by_key("k")
    assert kept is not None
    assert (kept.id, kept.status, kept.result, kept.progress) == (task.id, "succeeded", {"r": 1}, 1.0)
    assert kept.lease_until_ms is None
    assert kept.completed_at_ms is not None


async def test_a_task_whose_key_went_elsewhere_is_removed(store: PostgresStore) -> None:
    task = await claimed(store, key="k")
    newer = await store.submit("x", key="k", conflict="replace")
    assert newer.id != task.id
    assert await store.settle_many(ME, [forget(task)]) == ["canceled"], "replacing asked it to leave"
    assert await store.get(task.id) is not None


async def test_a_cancel_that_was_asked_wins_and_keeps_the_row(store: PostgresStore) -> None:
    task = await in_state(store, "cancel asked")
    assert await store.settle_many(ME, [forget(task)]) == ["canceled"]
    kept = await store.get(task.id)
    assert kept is not None
    assert (kept.status, kept.result) == ("canceled", None)


async def test_only_the_holder_of_the_attempt_removes(store: PostgresStore, test_clock: ClockOfDatabase) -> None:
    lapsed = await claimed(store)
    test_clock.advance(LEASE_MS + 1)
    theirs = await claimed(store, SOMEBODY)
    mine = await claimed(store)
    ended = await in_state(store, "failed")
    settlements = [forget(lapsed), forget(theirs), forget(mine, attempt=2), forget(ended)]
    assert await store.settle_many(ME, settlements) == [None] * 4
    for task in (lapsed, theirs, mine, ended):
        assert await store.get(task.id) == task
    assert await store.settle_many(ME, [forget(mine)]) == ["succeeded"]
    assert await store.settle_many(ME, [forget(mine)]) == [None]


async def test_forgotten_and_kept_go_in_one_batch(store: PostgresStore) -> None:
    tasks = [await claimed(store, **({"key": "k"} if number == 2 else {})) for number in range(4)]
    settlements = [forget(task) for task in tasks]
    settlements[1] = Settlement.complete(tasks[1].id, 1, None)
    assert await store.settle_many(ME, settlements) == ["succeeded"] * 4
    assert [await store.get(task.id) is None for task in tasks] == [True, False, False, True]


@pytest.mark.postgres
async def test_whoever_watches_is_told(client: CairnQ) -> None:
    store = client.store
    assert isinstance(store, PostgresStore)
    told: asyncio.Queue[str | None] = asyncio.Queue()
    ready = asyncio.Event()
    stop = await store.listen(
        ["cairnq_done"], lambda _channel, task_id: told.put_nowait(task_id), lambda _delivers: ready.set()
    )
    await ready.wait()
    gone, kept = await claimed(store), await claimed(store, key="k")
    await store.settle_many(ME, [forget(gone), forget(kept)])
    assert {await told.get(), await told.get()} == {gone.id, kept.id}
    await stop()


@pytest.mark.postgres
async def test_a_row_that_cannot_be_removed_is_kept_as_a_success(store: PostgresStore, database: str) -> None:
    """A trigger of somebody's, or a row policy, may take every delete for nothing: it is not asked for ever."""
    task = await claimed(store)
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
        await connection.execute("create function keep() returns trigger language plpgsql as 'begin return null; end'")
        await connection.execute(
            "create trigger keep before delete on cairnq_tasks for each row execute function keep()"
        )
    assert await soon(store.settle_many(ME, [forget(task)])) == ["succeeded"]
    kept = await store.get(task.id)
    assert kept is not None
    assert (kept.status, kept.result) == ("succeeded", {"r": 1})
