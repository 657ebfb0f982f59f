"""Writers that meet on one row: nothing waits that need not, nothing is written twice, nothing deadlocks."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from cairnq.db.statements import Statement, Statements
from cairnq.pure.envelope import worker_crashed
from cairnq.pure.models import Beat, Settlement
from cairnq.store.postgres import PostgresStore
from tests.store.postgres.sessions import until_sessions

ROWS = 40
RACES = 40
LEASE_MS = 600_000
GATE = 20_261_201


async def held(store: PostgresStore, count: int, worker_id: str = "w") -> list[str]:
    await store.submit_many([{"name": "a", "max_attempts": 1000}] * count)
    return [item.task.id for item in await store.claim_many(["default"], worker_id, LEASE_MS, count, None)]


async def locked(database: str, task_id: str) -> psycopg.AsyncConnection[Any]:
    """Somebody's open transaction that holds one row."""
    connection = await psycopg.AsyncConnection.connect(database)
    await connection.execute("select from cairnq_tasks where id = %s for update", [task_id])
    return connection


@pytest.mark.statement("recover")
async def test_recovery_passes_a_locked_row_by(store, database):
    ids = await held(store, 3)
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
        await connection.execute("update cairnq_tasks set lease_until_ms = 1")
    async with await locked(database, ids[1]):
        assert await store.recover() == 2
    assert await store.recover() == 1


@pytest.mark.statement("fail_worker")
async def test_crash_settlement_passes_a_locked_row_by(store, database):
    ids = await held(store, 3)
    error = worker_crashed("killed", {})
    async with await locked(database, ids[1]):
        assert {ref.id for ref in await store.fail_worker("w", error)} == {ids[0], ids[2]}
    assert [ref.id for ref in await store.fail_worker("w", error)] == [ids[1]]


@pytest.mark.statement("settle_forget")
async def test_forgetting_passes_a_locked_row_by(store, database):
    ids = await held(store, 3)
    forget = [Settlement.complete(task_id, 1, None, forget=True) for task_id in ids]
    async with await locked(database, ids[1]):
        assert await store.settle_many("w", forget) == ["succeeded", None, "succeeded"]
    assert await store.settle_many("w", forget) == [None, "succeeded", None]


@pytest.mark.statement("settle_forget")
async def test_forgetting_passes_no_row_by_that_a_beat_moved_meanwhile(store, database, monkeypatch):
    """The beat comes between the statement's snapshot and its locks: what is locked then is a newer version."""
    ids = await held(store, 2)
    get = Statements.get

    def held_up(self: Statements, name: str, *rest: Any) -> Statement:
        statement = get(self, name, *rest)
        if name != "settle_forget":
            return statement
        assert statement.text.count("order by s.id") == 1
        gate = f"where pg_advisory_lock_shared({GATE}) is not null order by s.id"
        return replace(statement, text=statement.text.replace("order by s.id", gate))

    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as gate:
        await gate.execute("select pg_advisory_lock(%s)", [GATE])
        with monkeypatch.context() as patched:
            patched.setattr(Statements, "get", held_up)
            forget = [Settlement.complete(task_id, 1, None, forget=True) for task_id in ids]
            settling = asyncio.create_task(store.settle_many("w", forget))
            await until_sessions(database, "wait_event = 'advisory'", bool)
            assert await store.beat_many([Beat(ids[0], "w", 1, LEASE_MS)]) == [False]
            await gate.execute("select pg_advisory_unlock(%s)", [GATE])
            assert await settling == ["succeeded", "succeeded"]
    assert await store.list() == []


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(None, id="any name", marks=pytest.mark.statement("claim")),
        pytest.param(["a"], id="one name", marks=pytest.mark.statement("claim_named")),
        pytest.param(["a", "b"], id="two names", marks=pytest.mark.statement("claim_named")),
    ],
)
async def test_claims_at_once_share_everything_out_and_share_no_row(store, database, names):
    await store.submit_many([{"name": name} for name in ("a", "b") for _ in range(150)])
    await store.submit_many([{"name": "foreign", "priority": 5}] * 20)
    others = [PostgresStore(database, max_size=1, installation=store.installation) for _ in range(4)]
    taken: list[str] = []

    async def drain(other: PostgresStore, worker_id: str) -> None:
        misses = 0
        while misses < 3:  # an empty claim may only mean that another held the last rows
            found = await other.claim_many(["default"], worker_id, LEASE_MS, 7, names)
            taken.extend(item.task.id for item in found)
            misses = 0 if found else misses + 1

    await asyncio.gather(*(drain(other, f"w{number}") for number, other in enumerate(others)))
    assert len(taken) == len(set(taken))
    assert len(taken) == {None: 320, 1: 150, 2: 300}[None if names is None else len(names)]
    for other in others:
        await other.close()


@pytest.mark.statement("settle", "beat", "fail_worker", "recover")
async def test_all_who_write_running_rows_race_without_a_deadlock(store, database):
    """Each takes its rows in the order of their ids, so none can wait for one that waits for it."""
    writers = [PostgresStore(database, max_size=1, installation=store.installation) for _ in range(4)]
    deadlocks = "select deadlocks from pg_stat_database where datname = current_database()"
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as watch:
        for _ in range(RACES):
            ids = await held(store, ROWS)
            attempts = {item.task_id: item.attempt for item in await store.held_by("w")}
            settlements = [Settlement.complete(task_id, attempts[task_id], None) for task_id in reversed(ids)]
            beats = [Beat(task_id, "w", attempts[task_id], LEASE_MS) for task_id in ids[::2] + ids[1::2]]
            settled, beaten, failed, recovered = await asyncio.gather(
                writers[0].settle_many("w", settlements),
                writers[1].beat_many(beats),
                writers[2].fail_worker("w", worker_crashed("killed", {}), backoff_ms=0),
                writers[3].recover(),
            )
            assert len(beaten) == ROWS
            assert recovered == 0
            # each row was settled by one, or by nobody yet (somebody held its lock), and never by two
            assert sum(status is not None for status in settled) + len(failed) <= ROWS
            await store.fail_worker("w", worker_crashed("killed", {}), backoff_ms=0)
            assert await store.held_by("w") == []
            await store.purge()
            for task in await store.list(status="queued", limit=ROWS):
                await store.cancel(task.id)
        assert await (await watch.execute(deadlocks)).fetchone() == (0,)
    for writer in writers:
        await writer.close()


async def test_a_row_that_changes_between_the_look_and_the_lock_is_left_for_the_next_round(store, database):
    """A settlement that began before a beat of the same row committed must not write over what it did not see."""
    ids = await held(store, 1)
    async with await psycopg.AsyncConnection.connect(database) as beating:
        beat = Statements("postgres", "public").get("beat")
        values = {"ids": ids, "worker_ids": ["w"], "attempts": [1], "leases_ms": [2 * LEASE_MS]}
        async with await psycopg.AsyncConnection.connect(database) as settling:
            await settling.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
            await settling.execute("select 1 from cairnq_tasks")  # its snapshot is taken
            await psycopg.AsyncRawCursor(beating).execute(beat.text.encode(), beat.arrange(values))
            await beating.commit()
            settle = Statements("postgres", "public").get("settle")
            with pytest.raises(psycopg.errors.SerializationFailure):
                await psycopg.AsyncRawCursor(settling).execute(
                    settle.text.encode(),
                    settle.arrange(
                        {
                            "worker_id": "w",
                            "ids": ids,
                            "attempts": [1],
                            "outcomes": ["complete"],
                            "bodies": ["1"],
                            "delays_ms": [0],
                        }
                    ),
                )
    assert await store.settle_many("w", [Settlement.complete(ids[0], 1, "done")]) == ["succeeded"]
