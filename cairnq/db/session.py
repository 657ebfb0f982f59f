"""What the store asks of a driver: sessions that run one statement, executors that open sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, runtime_checkable

Row = tuple[Any, ...]


class PgSession(Protocol):
    """One connection, as an application's own adapter offers it: `$1`-style placeholders."""

    async def query(self, text: str, values: Sequence[Any]) -> list[Any]: ...

    async def execute(self, sql: str) -> None: ...


@runtime_checkable
class PgExecutor(Protocol):
    """A source of sessions that the caller provides over a driver of their own. We never close it."""

    async def query(self, text: str, values: Sequence[Any]) -> list[Any]: ...

    async def execute(self, sql: str) -> None: ...

    def transaction(self) -> AbstractAsyncContextManager[PgSession]: ...


class Session(PgSession, Protocol):
    """A session of ours: `rows` gives bare tuples in the order of the statement's columns."""

    async def rows(self, text: str, values: Sequence[Any]) -> list[Row]: ...


@runtime_checkable
class PipelinedSession(Session, Protocol):
    """One whose driver sends several statements before it awaits the first answer."""

    async def together(self, asked: Sequence[tuple[str, Sequence[Any]]]) -> list[list[Row]]:
        """Their rows, after all of them were committed as one transaction; of a session in autocommit mode."""
        ...


class Executor(Protocol):
    """Opens sessions. `autocommit` ones run single statements; `transaction` commits, or rolls back on an exception."""

    dialect: str
    """The folder of sql/ whose statements its sessions run."""

    has_one_writer: bool
    """Whether a write excludes all others, so that who may find nothing to write had better look first."""

    async def rows(self, text: str, values: Sequence[Any]) -> list[Row]:
        """One statement in a transaction of its own. Of few texts: each may stay prepared for a connection's life."""
        ...

    def autocommit(self) -> AbstractAsyncContextManager[Session]: ...

    def transaction(self) -> AbstractAsyncContextManager[Session]: ...

    def borrow(self, given: Any, *, transaction: bool) -> AbstractAsyncContextManager[Session]:
        """A session over a connection of the caller's, inside their transaction. Raises `InvalidArgument`."""
        ...

    async def close(self) -> None: ...


class ForeignSession:
    """A caller's `PgSession` as a `Session`: rows may be mappings, records or tuples, as their driver makes them."""

    def __init__(self, session: PgSession) -> None:
        self._session = session

    async def rows(self, text: str, values: Sequence[Any]) -> list[Row]:
        return [as_tuple(row) for row in await self._session.query(text, values)]

    async def query(self, text: str, values: Sequence[Any]) -> list[Any]:
        return await self._session.query(text, values)

    async def execute(self, sql: str) -> None:
        await self._session.execute(sql)


def as_tuple(row: Any) -> Row:
    if isinstance(row, Mapping) or hasattr(row, "values"):  # a dict, or a record such as asyncpg's
        return tuple(row.values())
    return tuple(row)
