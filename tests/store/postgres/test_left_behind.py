"""What a statement and a connection leave behind once they are over: nothing that grows with either."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import psycopg
import pytest
from psycopg.pq import PGresult

from cairnq import PostgresStore
from cairnq.db.prepared import PreparedStatements
from tests.support.tasks import LEASE_MS, ME


async def test_a_connection_that_ended_is_remembered_by_nobody(database: str) -> None:
    statements = PreparedStatements()
    connections = []
    for _ in range(3):
        connection = await psycopg.AsyncConnection.connect(database, autocommit=True)
        assert await statements.rows(connection, "select $1::text", ["x"]) == [("x",)]
        await connection.close()
        connections.append(weakref.ref(connection))
        del connection
    gc.collect()
    assert [connection() for connection in connections] == [None] * 3


async def test_the_rows_of_a_claim_are_held_by_who_claimed_alone(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result of libpq holds the payloads a second time, and nobody counts it."""
    store = PostgresStore(database, max_size=1)
    await store.submit_many([{"name": "x", "payload": number} for number in range(3)])
    results: list[Any] = []
    wait = psycopg.AsyncConnection.wait

    async def watched(connection: psycopg.AsyncConnection[Any], *given: Any) -> Any:
        found = await wait(connection, *given)
        results.extend(result for result in found or () if isinstance(result, PGresult))
        return found

    monkeypatch.setattr(psycopg.AsyncConnection, "wait", watched)
    assert len(await store.claim(["default"], ME, LEASE_MS, limit=3)) == 3
    monkeypatch.undo()
    gc.collect()
    assert 3 in [result.ntuples for result in results]
    results.append(object())  # which nobody holds but this list
    assert len({sys.getrefcount(results[place]) for place in range(len(results))}) == 1
    await store.close()
