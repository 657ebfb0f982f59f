"""A wait in the middle of an outage: it goes on when the database answers again, within its own patience."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import cairnq.db.pool
import cairnq.store.wait
from cairnq import CairnQ, DatabaseUnavailable
from tests.support.gates import soon
from tests.support.proxy import Proxy

ME = "worker_W"


def failures_of(client: CairnQ, monkeypatch: pytest.MonkeyPatch, read: str) -> asyncio.Queue[Exception]:
    """The errors that a read of the store raises from now on."""
    raised: asyncio.Queue[Exception] = asyncio.Queue()
    real = getattr(client.store, read)

    async def noting(*arguments: Any) -> Any:
        try:
            return await real(*arguments)
        except Exception as error:
            raised.put_nowait(error)
            raise

    monkeypatch.setattr(client.store, read, noting)
    return raised


@pytest.mark.parametrize("by", ["id", "key"])
async def test_it_outlasts_an_outage(database: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    monkeypatch.setattr(cairnq.db.pool, "CHECKOUT_TIMEOUT_S", 0.2)
    async with CairnQ.postgres(database) as direct, CairnQ.postgres(proxy.dsn(database)) as client:
        task = await client.submit("x", key="k")
        raised = failures_of(client, monkeypatch, "get_status" if by == "id" else "get_status_by_key")
        wait = client.wait(task.id) if by == "id" else client.wait_by_key("k")
        waiting = asyncio.create_task(wait)
        proxy.refuse()
        for _ in range(2):
            assert isinstance(await soon(raised.get()), DatabaseUnavailable)
        await direct.store.claim(["default"], ME)
        await direct.store.complete(task.id, ME, "done")
        proxy.pass_through()
        assert (await soon(waiting)).result == "done"


async def test_an_outage_that_outlasts_it_is_named(
    database: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cairnq.db.pool, "CHECKOUT_TIMEOUT_S", 0.2)
    async with CairnQ.postgres(proxy.dsn(database)) as client:
        task = await client.submit("x")
        proxy.refuse()
        with pytest.raises(DatabaseUnavailable):
            await client.wait(task.id, timeout_ms=500)


@pytest.mark.parametrize("by", ["id", "key"])
async def test_a_server_that_does_not_answer_is_named_in_time(
    database: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """It raises of itself, while nothing arrives; the only connection of the pool is there for the next call."""
    monkeypatch.setattr(cairnq.store.wait, "REPLY_S", 0.05)
    async with CairnQ.postgres(proxy.dsn(database), max_size=1) as client:
        task = await client.submit("x", key="k")
        proxy.black_hole()
        wait = client.wait(task.id, timeout_ms=50) if by == "id" else client.wait_by_key("k", timeout_ms=50)
        with pytest.raises(DatabaseUnavailable, match="a look at the task had no reply within"):
            await soon(wait)
        proxy.pass_through()
        assert await soon(client.get(task.id)) == task
