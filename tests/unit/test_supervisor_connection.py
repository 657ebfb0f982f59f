"""The keeper's connection: one that does not answer is replaced, and nobody who still uses it takes harm."""

from __future__ import annotations

import asyncio

from cairnq import SqliteStore
from cairnq.pure.clock import boottime
from cairnq.run.outage import Outage
from cairnq_supervisor.roles.connection import Connection


async def test_who_still_asks_a_connection_that_was_replaced_gets_no_answer_and_no_error(tmp_path):
    path = tmp_path / "cairnq.db"
    store = SqliteStore(path)
    await store.connect()
    await store.close()
    events, replaced = [], asyncio.Event()
    connection = Connection(lambda: SqliteStore(path), Outage(lambda name, **_: events.append(name), boottime))

    async def late(store):
        await replaced.wait()
        return await store.stats()

    asking = asyncio.create_task(connection.ask("stats", late, patience=30))
    await asyncio.sleep(0)
    assert await connection.ask("never", lambda _store: asyncio.Event().wait(), patience=0.01) is None
    replaced.set()
    assert await asking is None
    assert await connection.ask("stats", lambda store: store.stats(), patience=30) == {}
    assert events == ["database.failed", "database.recovered"]
    await connection.close(patience=30)
