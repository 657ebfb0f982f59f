"""The keeper's connection: one that does not answer is replaced, and nobody who still uses it takes harm."""

from __future__ import annotations

import asyncio

from cairnq import SqliteStore
from cairnq.pure.clock import boottime
from cairnq.pure.errors import DatabaseUnavailable
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
    assert events == ["statement.failed", "database.failed", "database.recovered"]
    await connection.close(patience=30)


def test_each_error_of_an_outage_is_counted_and_the_outage_told_once():
    events = []
    outage = Outage(lambda name, **fields: events.append((name, fields.get("operation"))), lambda: 100.0)
    for operation in ("beat", "look", "beat"):
        outage.failed(DatabaseUnavailable("it is away"), operation, asked_at=99.0)
    outage.worked("look")
    outage.failed(DatabaseUnavailable("it was away"), "beat", asked_at=99.0)
    counted = [operation for name, operation in events if name == "statement.failed"]
    assert counted == ["beat", "look", "beat", "beat"]
    told = [event for event in events if event[0] != "statement.failed"]
    assert told == [("database.failed", "beat"), ("database.recovered", "look")]
