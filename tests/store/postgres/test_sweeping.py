"""A sweep that fails: told to whoever asked, or logged, and tried again at the next interval."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from cairnq import CairnQ, Retention
from tests.store.conftest import OpenClient
from tests.store.test_retention import until_left
from tests.support.tasks import in_state


async def test_a_sweep_that_fails_is_told_and_tried_again(
    client: CairnQ, open_client: OpenClient, database: str
) -> None:
    told: asyncio.Queue[Exception] = asyncio.Queue()
    await in_state(client.store, "succeeded")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("alter table cairnq_tasks rename to away")
        await open_client(retention=Retention(0, interval_ms=5, on_error=told.put_nowait))
        errors = [await told.get(), await told.get()]
        connection.execute("alter table away rename to cairnq_tasks")
    assert all("cairnq_tasks" in str(error) for error in errors)
    await until_left(client)


async def test_an_on_error_that_raises_does_not_end_it(client: CairnQ, open_client: OpenClient, database: str) -> None:
    reported: asyncio.Queue[Exception] = asyncio.Queue()
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.put_nowait(context["exception"]))

    def broken(error: Exception) -> None:
        raise RuntimeError("the callback's own") from error

    await in_state(client.store, "succeeded")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("alter table cairnq_tasks rename to away")
        await open_client(retention=Retention(0, interval_ms=5, on_error=broken))
        errors = [await reported.get(), await reported.get()]
        connection.execute("alter table away rename to cairnq_tasks")
    await until_left(client)
    assert {str(error) for error in errors} == {"the callback's own"}


async def test_without_an_on_error_it_is_logged(
    client: CairnQ, open_client: OpenClient, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("alter table cairnq_tasks rename to away")
        await open_client(retention=Retention(0, interval_ms=5))
        while not caplog.records:
            await client.store.protocol_version()
        connection.execute("alter table away rename to cairnq_tasks")
    assert "retention sweep failed, next in 5 ms" in caplog.text
