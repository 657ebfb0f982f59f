"""An application's own adapters over psycopg: a `PgExecutor` whose rows are dictionaries, or tuples."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg.rows import dict_row, tuple_row
from psycopg_pool import AsyncConnectionPool

ROWS = {"dictionaries": dict_row, "tuples": tuple_row}


class Session:
    """One connection of theirs."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], rows: str) -> None:
        self._connection = connection
        self._rows = ROWS[rows]

    async def query(self, text: str, values: Sequence[Any]) -> list[Any]:
        async with psycopg.AsyncRawCursor(self._connection, row_factory=self._rows) as cursor:
            await cursor.execute(text.encode(), values)
            return await cursor.fetchall() if cursor.description else []

    async def execute(self, sql: str) -> None:
        await self._connection.execute(sql.encode())


class Executor:
    """Sessions of their pool, which is theirs to open and close."""

    def __init__(self, pool: AsyncConnectionPool[Any], rows: str) -> None:
        self.pool = pool
        self._rows = rows

    async def query(self, text: str, values: Sequence[Any]) -> list[Any]:
        async with self.pool.connection() as connection:
            return await Session(connection, self._rows).query(text, values)

    async def execute(self, sql: str) -> None:
        async with self.pool.connection() as connection:
            await Session(connection, self._rows).execute(sql)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Session]:
        async with self.pool.connection() as connection, connection.transaction():
            yield Session(connection, self._rows)

    async def close(self) -> None:
        raise AssertionError("the application closes its executor, cairnq never does")


@asynccontextmanager
async def opened(dsn: str, rows: str, **settings: Any) -> AsyncIterator[Executor]:
    async with AsyncConnectionPool(dsn, min_size=1, max_size=4, open=False, **settings) as pool:
        yield Executor(pool, rows)
