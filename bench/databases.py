"""Databases to measure in: ours, or as a release of the other SDK from PyPI makes them; filled without a client."""

from __future__ import annotations

import asyncio

import psycopg

from cairnq.store.postgres import PostgresStore
from tests.support import peers
from tests.support.cluster import Cluster

AROUND_TEXT = 12
"""Bytes of a payload's key, quotes and braces."""
PAYLOAD_TEXT = "x" * (100 - AROUND_TEXT)
"""With its key and quotes, a payload of 100 bytes."""

_FILL = """
insert into cairnq_tasks (
    id, name, queue, status, payload, run_at_ms, root_id, created_at_ms, updated_at_ms, attempt, completed_at_ms
)
select made.id, %(name)s::text, 'default', %(status)s::text, jsonb_build_object('text', %(text)s::text),
    made.at, made.id, made.at, made.at,
    case %(status)s::text when 'queued' then 0 else 1 end,
    case %(status)s::text when 'queued' then null else made.at end
from (
    select 'task_' || lpad(n::text, 26, '0') as id, n as at
    from generate_series(%(first)s::bigint, %(first)s::bigint + %(count)s::bigint - 1) n
) made
"""


def ours(server: Cluster) -> str:
    """The DSN of a fresh database of ours."""
    dsn = server.dsn(server.create_database())
    asyncio.run(_connect_ours(dsn))
    return dsn


def peers_own(server: Cluster, release: str) -> tuple[str, str]:
    """The DSN of a fresh database that the other SDK made, and its version. Raises `PeerUnavailable`."""
    peer = peers.install(release)
    dsn = server.dsn(server.create_database())
    asyncio.run(_connect_peer(peer, dsn))
    return dsn, peer.version


def fill(
    dsn: str,
    count: int,
    *,
    name: str = "noop",
    size: int = 100,
    status: str = "queued",
    first: int = 1,
    tidy: bool = True,
) -> None:
    """Insert `count` tasks, numbered from `first`, all due (or `succeeded`); nobody is notified."""
    values = {"text": "x" * (size - AROUND_TEXT), "count": count, "name": name, "status": status, "first": first}
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create extension if not exists pg_stat_statements")
        connection.execute("set session_replication_role = replica")
        connection.execute(_FILL, values)
        if tidy:
            connection.execute("vacuum (analyze) cairnq_tasks")


async def _connect_ours(dsn: str) -> None:
    store = PostgresStore(dsn, max_size=1)
    await store.connect()
    await store.close()


async def _connect_peer(peer: peers.Peer, dsn: str) -> None:
    async with peers.running(peer, dsn) as process:
        await process.call("get", task_id="task_none")
