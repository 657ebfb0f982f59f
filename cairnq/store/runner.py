"""Runs named statements over an executor: the ground that the parts of every store stand on."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NoReturn, TypeVar

from cairnq.db.fault import Fault
from cairnq.db.session import Executor, PipelinedSession, Row, Session
from cairnq.db.sqlstate import classify, translate
from cairnq.db.statements import Statements
from cairnq.pure.errors import CairnQError, DatabaseUnavailable, StoreClosed
from cairnq.store.base import Installation

T = TypeVar("T")

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
        try:
            return await self.session.rows(statement.text, statement.arrange(values))
        except Exception as error:  # noqa: BLE001 - raised again, as ours
            raise_translated(error)

    async def together(self, asked: Sequence[tuple[str, Sequence[str], Mapping[str, Any]]]) -> list[list[Row]]:
        """Statements, variants and values: one round trip and one transaction; only where the store `exchanges`."""
        assert isinstance(self.session, PipelinedSession)
        found = [(self._statements.get(name, conditions), values) for name, conditions, values in asked]
        try:
            return await self.session.together([(item.text, item.arrange(values)) for item, values in found])
        except Exception as error:  # noqa: BLE001 - raised again, as ours
            raise_translated(error)


class StatementRunner:
    """Opens bound sessions, once `connect()` has told which schema; turns drivers' errors into ours."""

    def __init__(self, executor: Executor, installation: Installation | None) -> None:
        self._executor = executor
        self._statements: Statements | None = None
        self.installation: Installation | None = None
        if installation is not None:
            self._install(installation)

    async def connect(self) -> Installation:
        raise NotImplementedError

    def _install(self, installation: Installation) -> Installation:
        self.installation = installation
        self._statements = Statements(self._executor.dialect, installation.schema)
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
            raise_translated(error, own=True)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[BoundSession]:
        statements = await self._ready_statements()
        try:
            async with self._executor.transaction() as session:
                yield BoundSession(session, statements)
        except Exception as error:  # noqa: BLE001 - raised again, as ours
            raise_translated(error, own=True)

    async def _once(self, name: str, conditions: Collection[str] = (), /, **values: Any) -> list[Row]:
        """As `_rows`, by the shortest way there is."""
        statement = (await self._ready_statements()).get(name, conditions)
        arranged = statement.arrange(values)

        async def run() -> list[Row]:
            try:
                return await self._executor.rows(statement.text, arranged)
            except Exception as error:  # noqa: BLE001 - raised again, as ours
                raise_translated(error, own=True)

        return await _repeated(run)

    async def _rows(
        self,
        name: str,
        conditions: Collection[str] = (),
        literals: Mapping[str, str] | None = None,
        /,
        **values: Any,
    ) -> list[Row]:
        """One statement in a transaction of its own, repeated where the database undid it (deadlock, lock time-out)."""

        async def run() -> list[Row]:
            async with self._autocommit() as bound:
                return await bound.rows(name, conditions, literals, **values)

        return await _repeated(run)

    async def _rows_planned_afresh(
        self,
        name: str,
        conditions: Collection[str] = (),
        literals: Mapping[str, str] | None = None,
        /,
        **values: Any,
    ) -> list[Row]:
        """For people's questions: which index serves one depends on how common the values are that it names."""
        return await self._rows(name, conditions, literals, **values)


async def _repeated(run: Callable[[], Awaitable[T]]) -> T:
    for attempt in range(1, _RETRIES + 1):
        try:
            return await run()
        except StoreClosed:
            raise
        except Exception as error:
            if attempt == _RETRIES or classify(error) is not Fault.RETRY:
                raise
        await asyncio.sleep(_RETRY_PAUSE_S * attempt * random.random())  # noqa: S311 - jitter, not a secret
    raise AssertionError("unreachable: the last attempt returns or raises")


class CallersError(Exception):
    """Carries an exception out of code of the caller's that ran inside our transaction; it is theirs to understand."""

    def __init__(self, original: Exception) -> None:
        super().__init__(str(original))
        self.original = original


async def callers(work: Awaitable[T]) -> T:
    """Await code of the caller's inside a session of ours: its errors pass untranslated."""
    try:
        return await work
    except Exception as error:
        raise CallersError(error) from error


def raise_translated(error: Exception, *, own: bool = False) -> NoReturn:
    """Raise the error of ours that stands for it, or the error itself.

    `own`: the transaction was ours. A deadlock or a lock time-out in one of the caller's is left in the driver's words,
    by which they know that they may try theirs again.
    """
    if isinstance(error, CallersError):
        raise error.original
    ours = translate(error)
    if ours is not error:
        raise ours from error
    if own and classify(error) is Fault.RETRY and not isinstance(error, CairnQError):
        raise DatabaseUnavailable(f"the database could not do this now, and may later: {str(error).strip()}") from error
    raise error
