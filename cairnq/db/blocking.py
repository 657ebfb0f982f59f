"""The caller's own connection where it blocks, as a session: its coroutines wait for nothing, and so need no loop."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import psycopg
from psycopg.rows import tuple_row

from cairnq.db.arrays import array_literal
from cairnq.db.session import Row, as_tuple
from cairnq.db.sqlite.values import encoded, numbered
from cairnq.pure.errors import InvalidArgument

T = TypeVar("T")


def drive(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing but such a session: run here and now, on this thread."""
    try:
        work.send(None)
    except StopIteration as ended:
        value: T = ended.value
        return value
    finally:
        work.close()
    raise AssertionError("something was awaited that does not answer at once")


def lent(given: Any) -> Lent:
    """A session over a connection that the caller lends for one call, on the caller's thread. Never closed here."""
    if isinstance(given, psycopg.Connection):
        return LentPsycopg(given)
    if isinstance(given, sqlite3.Connection):
        return LentSqlite(given)
    if callable(getattr(given, "query", None)):
        return LentForeign(given)
    raise InvalidArgument(
        "session must be a Connection of psycopg or sqlite3, or an object whose query(text, values) blocks, "
        f"not {type(given).__name__}"
    )


class Lent:
    """A `Session`, complete once `rows` is."""

    async def rows(self, text: str, values: Sequence[Any]) -> list[Row]:
        raise NotImplementedError

    async def query(self, text: str, values: Sequence[Any]) -> list[Any]:
        return await self.rows(text, values)

    async def execute(self, sql: str) -> None:
        await self.rows(sql, ())

    def in_transaction(self) -> AbstractContextManager[Any]:
        """The caller's transaction; where none is open and each statement would be one of its own, a new one."""
        return nullcontext()


class LentPsycopg(Lent):
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection

    async def rows(self, text: str, values: Sequence[Any]) -> list[Row]:
        plain = [array_literal(value) if isinstance(value, list) else value for value in values]
        with psycopg.RawCursor(self.connection, row_factory=tuple_row) as cursor:
            cursor.execute(text.encode(), plain)
            return [] if cursor.description is None else cursor.fetchall()

    def in_transaction(self) -> AbstractContextManager[Any]:
        is_idle = self.connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
        return self.connection.transaction() if self.connection.autocommit and is_idle else nullcontext()


class LentForeign(Lent):
    """An object of the caller's with `query(text, values)` that blocks; its rows are as their driver makes them."""

    def __init__(self, session: Any) -> None:
        self._session = session

    async def rows(self, text: str, values: Sequence[Any]) -> list[Row]:
        return [as_tuple(row) for row in self._session.query(text, values)]


class LentSqlite(Lent):
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @property
    def path(self) -> str:
        """Of the file that it has open; empty for a database in memory."""
        found = next(file for _, name, file in self._rows("pragma database_list", ()) if name == "main")
        return os.path.realpath(found) if found else ""

    async def rows(self, text: str, values: Sequence[Any]) -> list[Row]:
        return self._rows(text, values)

    def _rows(self, text: str, values: Sequence[Any]) -> list[Row]:
        cursor = self._connection.cursor()
        cursor.row_factory = None  # the caller's is theirs
        return cursor.execute(text, numbered(map(encoded, values))).fetchall()

    @contextmanager
    def in_transaction(self) -> Iterator[None]:
        if self._connection.in_transaction:
            yield
            return
        connection = self._connection
        # Python 3.12 has a second way to ask for it, in which `commit` and `rollback` of the connection do nothing.
        commits_itself = connection.isolation_level is None or getattr(connection, "autocommit", None) is True
        connection.execute("begin immediate")
        if not commits_itself:  # the caller commits it, as after any first write of theirs
            yield
            return
        try:
            yield
        except BaseException:
            if connection.in_transaction:  # some errors of SQLite have ended it already
                connection.execute("rollback")
            raise
        connection.execute("commit")
