"""What sessions of a database are doing, as the server knows it."""

from __future__ import annotations

import asyncio
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
