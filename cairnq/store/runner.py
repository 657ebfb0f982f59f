"""Runs named statements over an executor: the ground that the parts of the PostgreSQL store stand on."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from cairnq.db.session import Executor, Row, Session
from cairnq.db.sqlstate import Fault, classify, translate
from cairnq.db.statements import Statements
from cairnq.pure.errors import StoreClosed
from cairnq.store.base import Installation

_RETRIES = 5
_RETRY_PAUSE_S = 0.02


class BoundSession:
    """A session and the statements of one schema: `rows("claim", queues=[...], ...)`."""

    def __init__(self, session: Session, statements: Statements) -> None:
        self.session = session
        self._statements = statements

    async def rows(
        self,
        name: str,
        conditions: Collection[str] = (),
        literals: Mapping[str, str] | None = None,
        /,
        **values: Any,
    ) -> list[Row]:
        statement = self._statements.get(name, conditions, literals)
        return await self.session.rows(statement.text, statement.arrange(values))


class StatementRunner:
    """Opens bound sessions, once `connect()` has told which schema; turns drivers' errors into ours."""

    def __init__(self, executor: Executor, installation: Installation | None) -> None:
        self._executor = executor
        self._statements: Statements | None = None
        self._connecting: asyncio.Lock | None = None
        self.installation: Installation | None = None
        if installation is not None:
            self._install(installation)

    async def connect(self) -> Installation:
        raise NotImplementedError

    def _install(self, installation: Installation) -> Installation:
        self.installation = installation
        self._statements = Statements("postgres", installation.schema)
        return installation

    async def _ready_statements(self) -> Statements:
        if self._statements is None:
            await self.connect()
        assert self._statements is not None
        return self._statements

    @asynccontextmanager
    async def _autocommit(self) -> AsyncIterator[BoundSession]:
        statements = await self._ready_statements()
        try:
            async with self._executor.autocommit() as session:
                yield BoundSession(session, statements)
        except Exception as error:  # noqa: BLE001 - raised again, as ours
            raise_translated(error)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[BoundSession]:
        statements = await self._ready_statements()
        try:
            async with self._executor.transaction() as session:
                yield BoundSession(session, statements)
        except Exception as error:  # noqa: BLE001 - raised again, as ours
            raise_translated(error)

    async def _rows(
        self,
        name: str,
        conditions: Collection[str] = (),
        literals: Mapping[str, str] | None = None,
        /,
        **values: Any,
    ) -> list[Row]:
        """One statement in a transaction of its own, repeated where PostgreSQL undid it (deadlock, lock time-out)."""
        for attempt in range(1, _RETRIES + 1):
            try:
                async with self._autocommit() as bound:
                    return await bound.rows(name, conditions, literals, **values)
            except StoreClosed:
                raise
            except Exception as error:
                if attempt == _RETRIES or classify(error) is not Fault.RETRY:
                    raise
            await asyncio.sleep(_RETRY_PAUSE_S * attempt * random.random())  # noqa: S311 - jitter, not a secret
        raise AssertionError("unreachable: the last attempt returns or raises")


def raise_translated(error: Exception) -> None:
    """Raise the error of ours that stands for it, or the error itself."""
    ours = translate(error)
    if ours is error:
        raise error
    raise ours from error
