"""What the database, the role or the environment sets for all sessions changes nothing for ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import sql

from cairnq import CairnQ, Settlement
from cairnq.db.connection import PsycopgSession
from cairnq.pure.ids import new_worker_id
from tests.store.postgres.sessions import sessions, until_blocked
from tests.support.tasks import LEASE_MS, ME, claimed

VALUE = {"text": "\u00e4\u20ac\U0001f600 \\ ' \"", "third": 1 / 3, "nulls": [None, "null", "NULL"]}

SETTINGS = {
    "default_transaction_isolation": "serializable",
    "client_encoding": "latin1",
    "extra_float_digits": "-10",
    "array_nulls": "off",
    "standard_conforming_strings": "off",
    "DateStyle": "German",
    "transform_null_equals": "on",
    "enable_indexscan": "off",
    "enable_nestloop": "off",
}

PLANS = ("indexscan", "indexonlyscan", "tidscan", "nestloop", "material", "memoize", "hashagg", "incremental_sort")
OURS = {f"enable_{plan}": ("off", "on") for plan in PLANS} | {
    "statement_timeout": ("60s", "0"),
    "lock_timeout": ("60s", "0"),
    "transaction_timeout": ("60s", "0"),
    "idle_session_timeout": ("60s", "0"),
}
"""What somebody may set for all, and what our sessions have all the same."""


@pytest.fixture
def set_for_all(database: str) -> Callable[[str, str], None]:
    """Sets something for every session of the test's database to come."""

    def set_for_all(name: str, value: str) -> None:
        with psycopg.connect(database, autocommit=True) as connection:
            statement = sql.SQL("alter database {} set {} = {}")
            identifiers = sql.Identifier(connection.info.dbname), sql.Identifier(name.lower())
            connection.execute(statement.format(*identifiers, sql.Literal(value)))

    return set_for_all


@pytest.mark.parametrize("name", SETTINGS)
async def test_a_task_crosses_intact_whatever_is_set(
    database: str, set_for_all: Callable[[str, str], None], name: str
) -> None:
    set_for_all(name, SETTINGS[name])
    async with CairnQ.postgres(database) as client:
        await client.submit_many([{"name": "x", "queue": "q", "payload": VALUE, "correlation_id": "null"}] * 2)
        tasks = await client.store.claim(["q"], ME, LEASE_MS, limit=2)
        assert [(task.payload, task.correlation_id, task.parent_id) for task in tasks] == [(VALUE, "null", None)] * 2
        assert (await client.store.progress(tasks[0].id, ME, 1 / 3, VALUE["text"])).progress == 1 / 3
        settlements = [Settlement.complete(tasks[0].id, 1, VALUE), Settlement.release(tasks[1].id, 1, started=False)]
        assert await client.store.settle_many(ME, settlements) == ["succeeded", "queued"]
        assert (await client.get(tasks[0].id)).result == VALUE  # type: ignore[union-attr]


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
async def test_writes_that_meet_wait_for_each_other_whatever_isolation_is_set(
    database: str, set_for_all: Callable[[str, str], None], isolation: str
) -> None:
    set_for_all("default_transaction_isolation", isolation)
    async with CairnQ.postgres(database) as client:
        same = await asyncio.gather(*(client.submit("x", key="k", conflict="reuse") for _ in range(8)))
        assert len({task.id for task in same}) == 1
        task = await claimed(client.store)
        beats = [client.store.heartbeat(task.id, ME, LEASE_MS, attempt=1) for _ in range(8)]
        assert {beaten.id for beaten in await asyncio.gather(*beats)} == {task.id}


@pytest.mark.parametrize("name", OURS)
async def test_a_session_of_ours_has_what_its_statements_are_written_for(
    database: str, set_for_all: Callable[[str, str], None], name: str
) -> None:
    theirs, ours = OURS[name]
    known = "select setting from pg_settings where name = $1"
    async with CairnQ.postgres(database) as client:
        executor: Any = client.store._executor  # type: ignore[attr-defined]
        if not await executor.rows(known, [name]):
            pytest.skip(f"this server does not know {name}")
        set_for_all(name, theirs)
        connection = await executor.connect()  # as one that listens
        assert await PsycopgSession(connection).rows(known, [name]) == [(ours,)]
        await connection.close()
    async with CairnQ.postgres(database) as client:
        assert await client.store._executor.rows(known, [name]) == [(ours,)]  # type: ignore[attr-defined]


async def test_a_submit_waits_for_a_lock_whatever_time_out_is_set(
    database: str, set_for_all: Callable[[str, str], None]
) -> None:
    async with CairnQ.postgres(database) as client:
        await client.submit("x")
    set_for_all("lock_timeout", "1ms")
    async with CairnQ.postgres(database) as client, await psycopg.AsyncConnection.connect(database) as blocking:
        await blocking.execute("set lock_timeout = 0")
        await blocking.execute("lock table cairnq_tasks in access exclusive mode")
        submitting = asyncio.create_task(client.submit("x"))
        await until_blocked(database, submitting)
        await blocking.rollback()
        assert (await submitting).queued


async def test_a_time_out_that_the_url_asks_for_is_kept(database: str) -> None:
    asking = "&" if "?" in database else "?"
    async with CairnQ.postgres(f"{database}{asking}options=-c%20statement_timeout%3D45s") as client:
        assert await client.store._executor.rows("show statement_timeout", []) == [("45s",)]  # type: ignore[attr-defined]


async def test_the_encoding_of_the_url_and_of_the_environment_is_not_that_of_payloads(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "latin1")
    for url in (database, f"{database}{'&' if '?' in database else '?'}client_encoding=latin1"):
        async with CairnQ.postgres(url) as client:
            task = await client.submit("x", VALUE)
            assert (await client.get(task.id)).payload == VALUE  # type: ignore[union-attr]


async def test_behind_a_pooler_keyed_submits_see_what_the_key_led_to(
    database: str, set_for_all: Callable[[str, str], None]
) -> None:
    """Where each transaction says what it needs, for no setting of the session would be ours."""
    set_for_all("default_transaction_isolation", "repeatable read")
    async with CairnQ.postgres(database, listen_database=database) as client:
        same = await asyncio.gather(*(client.submit("x", key="k") for _ in range(8)))
        assert len({task.id for task in same}) == 1


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
async def test_behind_a_pooler_claims_that_meet_pass_each_other(
    database: str, set_for_all: Callable[[str, str], None], isolation: str
) -> None:
    claimed: list[str] = []

    async def claim(store: Any, worker_id: str) -> None:
        while tasks := await store.claim(["default"], worker_id, LEASE_MS, limit=2):
            claimed.extend(task.id for task in tasks)

    set_for_all("default_transaction_isolation", isolation)
    async with CairnQ.postgres(database, listen_database=database) as client:
        await client.submit_many([{"name": "x"}] * 200)
        await asyncio.gather(*(claim(client.store, new_worker_id()) for _ in range(8)))
        assert sorted(claimed) == sorted(task.id for task in await client.list(limit=200))


async def test_behind_a_pooler_a_statement_that_fails_leaves_no_transaction(
    database: str, set_for_all: Callable[[str, str], None]
) -> None:
    set_for_all("default_transaction_isolation", "serializable")
    async with CairnQ.postgres(database, listen_database=database, max_size=1) as client:
        executor: Any = client.store._executor  # type: ignore[attr-defined]
        assert await executor.rows("show transaction_isolation", []) == [("read committed",)]
        with pytest.raises(psycopg.errors.DivisionByZero):
            await executor.rows("select 1 / 0", [])
        assert not sessions(database, "state like '%transaction%'")
        assert (await client.submit("x")).queued
