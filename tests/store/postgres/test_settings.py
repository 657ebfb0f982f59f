"""What the database, the role or the environment sets for all sessions changes nothing for ours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import psycopg
import pytest
from psycopg import sql

from cairnq import CairnQ, Settlement
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
}


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
