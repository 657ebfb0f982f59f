"""The trigger: who is woken, by what, and how often. The gate is in docs/decisions/0003-gated-notify.md."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from cairnq.pure.models import Beat, Settlement
from cairnq.store.postgres import PostgresStore

Notes = list[tuple[str, str]]
END = ("cairnq_done", "the end")
INSERT = """
insert into public.cairnq_tasks (id, name, queue, status, payload, run_at_ms, created_at_ms, updated_at_ms)
values (%s, 'n', %s, 'queued', '{}', 0, 0, 0)
"""


class Ear:
    """One listening connection; `heard()` is what came since the last call, and after it no session is silent."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._connection.execute("listen cairnq_queued")
        self._connection.execute("listen cairnq_done")

    def heard(self) -> Notes:
        """Notifications arrive in the order of the commits: all until one that this sends itself."""
        self._connection.execute("select pg_notify(%s, %s)", END)
        notes: Notes = []
        for note in self._connection.notifies(timeout=60):
            if (note.channel, note.payload) == END:
                break
            notes.append((note.channel, note.payload))
        else:
            pytest.fail("the listener's own notification did not arrive")
        _await_next(self._connection, 250)
        return notes

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def ear(store: PostgresStore, database: str) -> Iterator[Ear]:
    ear = Ear(database)
    yield ear
    ear.close()


async def test_a_submit_names_its_queue_once(store, ear):
    await store.submit("a", queue="emails")
    assert ear.heard() == [("cairnq_queued", "emails")]


async def test_a_bulk_insert_is_one_notification_for_each_queue(store, ear):
    await store.submit_many([{"name": "a", "queue": queue} for queue in ("x", "y") for _ in range(500)])
    assert sorted(ear.heard()) == [("cairnq_queued", "x"), ("cairnq_queued", "y")]


async def test_claims_beats_and_progress_send_nothing(store, ear):
    task = await store.submit("a")
    ear.heard()
    claimed = await store.claim(["default"], "w")
    assert [item.id for item in claimed] == [task.id]
    await store.beat_many([Beat(task.id, "w", 1, 30_000)])
    await store.heartbeat(task.id, "w")
    await store.progress(task.id, "w", 0.5, "half")
    await store.cancel(task.id)  # only asked: it goes on running
    assert ear.heard() == []


async def test_each_end_sends_its_own_id_exactly_once(store, ear):
    tasks = await store.submit_many([{"name": "a"}] * 100)
    await store.claim_many(["default"], "w", 30_000, 100, None)
    ear.heard()
    await store.settle_many("w", [Settlement.complete(task.id, 1, None) for task in tasks])
    assert sorted(ear.heard()) == sorted(("cairnq_done", task.id) for task in tasks)


async def test_every_way_to_end_and_to_queue_again_is_announced(store, ear):
    async def running(**options: Any) -> str:
        task = await store.submit("a", **options)
        await store.claim(["default"], "w")
        ear.heard()
        return str(task.id)

    failed = await running(max_attempts=1)
    await store.fail(failed, "w", {"code": "x"})
    assert ear.heard() == [("cairnq_done", failed)]
    await store.retry(failed)
    assert ear.heard() == [("cairnq_queued", "default")]
    await store.cancel(failed)
    assert ear.heard() == [("cairnq_done", failed)]
    again = await running()
    await store.fail(again, "w", {"code": "x"})
    assert ear.heard() == [("cairnq_queued", "default")]
    await store.cancel(again)
    forgotten = await running()
    await store.settle_many("w", [Settlement.complete(forgotten, 1, None, forget=True)])
    assert await store.get(forgotten) is None
    assert ear.heard() == [("cairnq_done", forgotten)]


async def test_a_recovered_task_is_announced(store, ear, database):
    task = await store.submit("a")
    await store.claim(["default"], "w")
    ear.heard()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("update cairnq_tasks set lease_until_ms = 1 where id = %s", [task.id])
    assert await store.recover() == 1
    assert ear.heard() == [("cairnq_queued", "default")]


async def test_what_is_rolled_back_wakes_nobody(store, ear, database):
    async with await psycopg.AsyncConnection.connect(database) as connection:
        await store.submit("a", session=connection)
        await connection.rollback()
    assert ear.heard() == []


async def test_a_schema_qualified_insert_fires_the_trigger_whatever_the_search_path(store, ear, database):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("set search_path = pg_catalog")
        connection.execute(INSERT, ["task_1", "q"])
        connection.execute("update public.cairnq_tasks set status = 'canceled' where id = 'task_1'")
    assert ear.heard() == [("cairnq_queued", "q"), ("cairnq_done", "task_1")]


@pytest.mark.fault(row=21)
async def test_the_gate_lets_one_of_many_through_while_it_commits(store, ear, database):
    """Two inserts at once into one queue: while the first holds the gate the second is silent; other queues are not."""
    with psycopg.connect(database) as first:
        _hold_the_gate_of(first, "busy")
        await store.submit("a", queue="other")
        assert ear.heard() == [("cairnq_queued", "other")]
        first.commit()
    assert ear.heard() == [("cairnq_queued", "busy")]


async def test_a_long_transaction_does_not_silence_its_queue(store, ear, database):
    """It holds the gate of one moment; 50 ms later the gate is another."""
    with psycopg.connect(database) as long:
        _hold_the_gate_of(long, "busy")
        with psycopg.connect(database, autocommit=True) as watch:
            _await_next(watch, 20)
        for _ in range(3):
            await store.submit("a", queue="busy")
        assert ("cairnq_queued", "busy") in ear.heard()
        long.rollback()


@pytest.mark.fault(row=21)
async def test_sixteen_writers_at_once_are_all_heard_of(store, ear, database):
    """Whoever was silenced has a notification after its insert began, and workers look again for 100 ms after one."""
    barrier = threading.Barrier(16)

    def insert(number: int) -> None:
        with psycopg.connect(database, autocommit=True) as connection:
            barrier.wait()
            for n in range(20):
                connection.execute(INSERT, [f"task_{number}_{n}", "q"])

    threads = [threading.Thread(target=insert, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    notes = ear.heard()
    assert set(notes) == {("cairnq_queued", "q")}
    assert 1 <= len(notes) <= 16 * 20


def _hold_the_gate_of(connection: psycopg.Connection[Any], queue: str) -> None:
    """An insert in a transaction that stays open."""
    connection.execute(INSERT, ["task_held", queue])


def test_a_session_says_it_once_in_a_moment_and_again_in_the_next(ear, database):
    """Two transactions within microseconds mostly share a moment of 4 ms; a hundred of such pairs cannot all differ."""
    pair = """
    do $$ begin
        insert into cairnq_tasks (id, name, queue, status, payload, run_at_ms, created_at_ms, updated_at_ms)
        values ('task_{0}_1', 'n', 'q', 'queued', '{{}}', 0, 0, 0);
        commit;
        insert into cairnq_tasks (id, name, queue, status, payload, run_at_ms, created_at_ms, updated_at_ms)
        values ('task_{0}_2', 'n', 'q', 'queued', '{{}}', 0, 0, 0);
    end $$
    """
    with psycopg.connect(database, autocommit=True) as connection:
        for number in range(20):
            connection.execute(pair.format(number).encode())
            _await_next(connection, 250)
    notes = ear.heard()
    assert set(notes) == {("cairnq_queued", "q")}
    assert 20 <= len(notes) < 40


def test_a_rollback_does_not_silence_what_follows(ear, database):
    with psycopg.connect(database) as connection:
        connection.execute(INSERT, ["task_1", "q"])
        connection.rollback()
        connection.execute(INSERT, ["task_2", "q"])
        connection.commit()
    assert ear.heard() == [("cairnq_queued", "q")]


def test_a_session_names_each_queue(ear, database):
    with psycopg.connect(database, autocommit=True) as connection:
        for number, queue in enumerate(["x", "y"]):
            connection.execute(INSERT, [f"task_{number}", queue])
    assert ear.heard() == [("cairnq_queued", "x"), ("cairnq_queued", "y")]


def _await_next(connection: psycopg.Connection[Any], per_second: int) -> None:
    """Returns in another moment of the database's clock than that of the call."""
    moment = f"select (extract(epoch from clock_timestamp()) * {per_second})::bigint".encode()
    first = connection.execute(moment).fetchone()
    while connection.execute(moment).fetchone() == first:
        continue
