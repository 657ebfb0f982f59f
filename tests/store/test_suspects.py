"""Who was in flight when a process died: given back and marked the first time, left to run alone the second."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

import psycopg
import pytest

from cairnq import PostgresStore, Task
from cairnq.pure.envelope import worker_crashed
from cairnq.pure.models import Settlement
from tests.support.clock import ClockOfDatabase
from tests.support.routes import is_file
from tests.support.tasks import ERROR, LEASE_MS, ME, SOMEBODY, broken_rules

QUEUE = "haunted"
CRASH = worker_crashed("worker default/0 died: SIGKILL", {"exit_code": None, "signal": 9})


async def submitted(store: PostgresStore, count: int = 1, **options: Any) -> list[str]:
    made = await store.submit_many([{"name": "x", "queue": QUEUE, **options} for _ in range(count)])
    return [task.id for task in made]


async def claimed(store: PostgresStore, worker_id: str = ME, names: list[str] | None = None) -> list[Task]:
    return await store.claim([QUEUE], worker_id, LEASE_MS, 100, names)


async def claimed_alone(store: PostgresStore, worker_id: str = ME, names: tuple[str, ...] = ("x",)) -> list[Task]:
    return [row.task for row in await store.claim_suspect([QUEUE], worker_id, LEASE_MS, list(names))]


async def died(store: PostgresStore, tasks: list[Task], *, alone: bool = False, delay_ms: int = 0) -> list[str | None]:
    """`ME`, with these in flight."""
    crashes = [Settlement.crash(task.id, task.attempt, CRASH, alone=alone, delay_ms=delay_ms) for task in tasks]
    return list(await store.settle_many(ME, crashes))


async def marked(store: PostgresStore, times: int, **options: Any) -> str:
    """A queued task that was in flight at so many deaths."""
    [task_id] = await submitted(store, **options)
    for _ in range(times):
        assert await died(store, await claimed(store)) == ["queued"]
    return task_id


def write(database: str, statement: str) -> None:
    """Over a connection of the test's own."""
    if is_file(database):
        with closing(sqlite3.connect(database)) as file, file:
            file.execute(statement)
    else:
        with psycopg.connect(database) as connection:
            connection.execute(statement.encode())


async def test_the_first_time_all_are_given_back_marked_and_run_as_usual(store: PostgresStore, database: str) -> None:
    ids = await submitted(store, 3)
    tasks = await claimed(store)
    await store.progress(ids[0], ME, 0.5, "half")
    assert await died(store, tasks) == ["queued"] * 3
    for task_id in ids:
        task = await store.get(task_id)
        assert task is not None
        assert (task.attempt, task.worker_id, task.progress, task.message) == (0, None, None, None)
        assert task.error == {**CRASH, "details": {**CRASH["details"], "suspect": 1}}
    assert await claimed_alone(store) == []
    assert {task.id for task in await claimed(store, names=["x"])} == set(ids)
    assert broken_rules(database) == []


@pytest.mark.parametrize("names", [None, ["x"], ["x", "y"]], ids=["any name", "its name", "some names"])
async def test_the_second_time_no_usual_claim_takes_it(
    store: PostgresStore, database: str, names: list[str] | None
) -> None:
    suspect = await marked(store, 2)
    others = await submitted(store, 2) + await submitted(store, 1, name="y")
    assert (await store.backlog([QUEUE], 100))[QUEUE].suspects == 1
    assert suspect not in {task.id for task in await claimed(store, names=names)}
    [task] = await claimed_alone(store)
    assert (task.id, task.attempt, task.error["details"]["suspect"]) == (suspect, 1, 2)
    assert (await store.backlog([QUEUE], 100))[QUEUE].suspects == 0
    assert (await store.complete(suspect, ME, "good after all")).succeeded
    assert suspect not in others
    assert broken_rules(database) == []


async def test_a_drawn_claim_leaves_it_out_too(store: PostgresStore) -> None:
    await marked(store, 2)

    async def plan(draw: Any) -> list[Task]:
        return list(await draw(["x"], 10))

    assert await store.claim_session([QUEUE], SOMEBODY, LEASE_MS, ["x"], plan) is None, "nothing is due to them"


async def test_only_a_death_alone_spends_an_attempt_and_in_the_end_it_is_failed(
    store: PostgresStore, database: str
) -> None:
    suspect = await marked(store, 2, max_attempts=3)
    for attempt in (1, 2, 3):
        [task] = await claimed_alone(store)
        assert task.attempt == attempt
        assert await died(store, [task], alone=True) == ["queued" if attempt < 3 else "failed"]
        assert await claimed(store) == []
    ended = await store.get(suspect)
    assert ended is not None
    assert (ended.attempt, ended.error["code"], ended.error["details"]["signal"]) == (3, "worker_crashed", 9)
    assert broken_rules(database) == []


async def test_a_death_alone_counts_as_one_it_was_in_flight_at(store: PostgresStore) -> None:
    [task_id] = await submitted(store)
    assert await died(store, await claimed(store), alone=True) == ["queued"]
    [again] = await claimed(store)
    assert (again.attempt, again.error["details"]["suspect"]) == (2, 1)
    assert await died(store, [again]) == ["queued"]
    assert await claimed(store) == []
    [suspect] = await claimed_alone(store)
    assert (suspect.id, suspect.attempt) == (task_id, 2), "the attempt beside others was given back"


async def test_what_may_run_once_only_is_not_run_again_after_a_death(store: PostgresStore) -> None:
    [task_id] = await submitted(store, max_attempts=1)
    assert await died(store, await claimed(store)) == ["failed"]
    ended = await store.get(task_id)
    assert ended is not None
    assert (ended.attempt, ended.error["code"]) == (1, "worker_crashed")


async def test_a_cancel_wins(store: PostgresStore) -> None:
    [task_id] = await submitted(store)
    tasks = await claimed(store)
    await store.cancel(task_id)
    assert await died(store, tasks) == ["canceled"]


async def test_a_suspect_waits_for_its_backoff(store: PostgresStore, test_clock: ClockOfDatabase) -> None:
    await submitted(store)
    await died(store, await claimed(store))
    await died(store, await claimed(store), delay_ms=60_000)
    assert not await store.suspect_waits([QUEUE], ["x"])
    assert await claimed_alone(store) == []
    test_clock.advance(60_001)
    assert await store.suspect_waits([QUEUE], ["x"])
    assert len(await claimed_alone(store)) == 1


async def test_suspects_are_claimed_one_at_a_time_in_the_order_of_claims(store: PostgresStore) -> None:
    low, high = await marked(store, 2), await marked(store, 2, priority=9)
    await marked(store, 2, name="foreign", priority=10)
    assert [task.id for task in await claimed_alone(store)] == [high]
    assert [task.id for task in await claimed_alone(store, SOMEBODY)] == [low]
    assert await claimed_alone(store, SOMEBODY) == []
    assert not await store.suspect_waits([QUEUE], ["x"])


async def test_a_release_and_an_expired_lease_keep_the_mark(store: PostgresStore, test_clock: ClockOfDatabase) -> None:
    await marked(store, 2)
    [task] = await claimed_alone(store)
    await store.settle_many(ME, [Settlement.release(task.id, task.attempt, started=True)])
    [task] = await claimed_alone(store)
    assert task.attempt == 1
    test_clock.advance(LEASE_MS + 1)
    assert await store.recover() == 1
    assert await claimed(store) == []
    assert [task.attempt for task in await claimed_alone(store)] == [2]


async def test_any_other_outcome_and_a_retry_take_the_mark_away(store: PostgresStore) -> None:
    failed = await marked(store, 2)
    [task] = await claimed_alone(store)
    await store.fail(task.id, ME, ERROR)
    assert [task.id for task in await claimed(store)] == [failed]
    await store.fail(failed, ME, ERROR, retryable=False)
    canceled = await marked(store, 2)
    await store.cancel(canceled)
    for task_id in (failed, canceled):
        await store.retry(task_id)
    assert {task.id for task in await claimed(store)} == {failed, canceled}


ODD_ERRORS = [
    '{"code": "worker_crashed"}',
    '{"code": "worker_crashed", "details": null}',
    '{"code": "worker_crashed", "details": {"suspect": "2"}}',
    '{"code": "worker_crashed", "details": {"suspect": [2]}}',
    '{"code": "handler_error", "details": {"suspect": 2}}',
    '["worker_crashed", {"suspect": 2}]',
    '"worker_crashed"',
    "null",
    "2",
]


async def test_an_error_of_another_form_is_no_mark(store: PostgresStore, database: str) -> None:
    errors = dict(zip(await submitted(store, len(ODD_ERRORS)), ODD_ERRORS, strict=True))
    for task_id, error in errors.items():
        write(database, f"update cairnq_tasks set error = '{error}' where id = '{task_id}'")
    assert await claimed_alone(store) == []
    tasks = await claimed(store, names=["x"])
    assert {task.id: task.error for task in tasks} == {task_id: json.loads(error) for task_id, error in errors.items()}
    assert await died(store, tasks) == ["queued"] * len(errors)
    assert {task.error["details"]["suspect"] for task in await claimed(store)} == {1}
