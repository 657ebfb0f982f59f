"""An executor over a `PgExecutor` of the caller's: their driver, their pool, their connection settings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from cairnq.db.borrow import borrow
from cairnq.db.session import ForeignSession, PgExecutor, Row, Session


class ForeignExecutor:
    """Never closes what it was given: the caller opened it, and may share it with the rest of the application."""

    dialect = "postgres"
    has_one_writer = False

    def __init__(self, executor: PgExecutor) -> None:
        self.executor = executor

    async def rows(self, text: str, values: Sequence[Any]) -> list[Row]:
        return await ForeignSession(self.executor).rows(text, values)

    @asynccontextmanager
    async def autocommit(self) -> AsyncIterator[Session]:
        yield ForeignSession(self.executor)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Session]:
        async with self.executor.transaction() as session:
            yield ForeignSession(session)

    def borrow(self, given: Any, *, transaction: bool) -> AbstractAsyncContextManager[Session]:
        return borrow(given, transaction=transaction)

    async def close(self) -> None:
        return None
