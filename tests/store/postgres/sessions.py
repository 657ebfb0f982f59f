"""What sessions of a database are doing, as the server knows it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import psycopg

_BLOCKED = """
select count(*) from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock' and pid <> pg_backend_pid()
"""


async def until_blocked(dsn: str, work: asyncio.Task[Any]) -> None:
    """Returns when a session of the database waits for a lock; raises what `work` raised, if it ended instead."""
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as looking:
        while not work.done():
            [(blocked,)] = await (await looking.execute(_BLOCKED)).fetchall()
            if blocked:
                return
    raise AssertionError(f"ended without waiting for a lock: {work.result()!r}")


def sessions(dsn: str, where: str = "true") -> list[int]:
    """Process ids of the database's sessions that cairnq opened and for which `where` (SQL) holds."""
    with psycopg.connect(dsn, autocommit=True) as looking:
        found = looking.execute(f"select pid from pg_stat_activity where {_OURS} and {where} order by pid".encode())
        return [row[0] for row in found]


LISTENING = "query ilike 'listen %'"

_OURS = "datname = current_database() and application_name = 'cairnq' and pid <> pg_backend_pid()"


async def until_sessions(dsn: str, where: str, wanted: Callable[[list[int]], bool]) -> list[int]:
    """The sessions for which `where` holds, once `wanted(pids)` does."""
    while True:
        found = await asyncio.to_thread(sessions, dsn, where)
        if wanted(found):
            return found


def terminate(dsn: str, pids: Iterable[int]) -> None:
    """Ends sessions and returns when they are gone."""
    with psycopg.connect(dsn, autocommit=True) as looking:
        for pid in pids:
            looking.execute("select pg_terminate_backend(%s, 10000)", [pid])
