"""Sessions over one SQLite file: statements go to the threads that own connections, results come back to the loop."""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from cairnq.db.blocking import Lent, LentSqlite
from cairnq.db.session import Row, Session
from cairnq.db.sqlite import forks
from cairnq.db.sqlite.delivery import Statement
from cairnq.db.sqlite.file import DatabaseFile
from cairnq.db.sqlite.lanes import ReadLane
from cairnq.db.sqlite.script import reads_only, split_script
from cairnq.db.sqlite.values import encoded, numbered
from cairnq.db.sqlite.watch import FileWatch
from cairnq.db.sqlite.writer import Transaction, WriteLane
from cairnq.pure.errors import InvalidArgument, StoreClosed

READERS = 2
"""So that a long read (counts of a large table) does not hold up the short ones."""

_PLACEHOLDER = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\$(\d+)")

_leading: ContextVar[Transaction | None] = ContextVar("cairnq_sqlite_transaction", default=None)
"""The transaction that this task leads."""

_watches: weakref.WeakSet[FileWatch] = weakref.WeakSet()
_watches_lock = threading.Lock()


class SqliteSession:
    """Runs statements through `run`. Lists go as JSON text, for `json_each`."""

    def __init__(
        self, run: Callable[[Statement], Awaitable[list[Any]]], transaction: Transaction | None = None
    ) -> None:
        self._run = run
        self.transaction = transaction

    async def rows(self, text: str, values: Sequence[Any]) -> list[Row]:
        return await self._run(Statement(text, numbered(map(encoded, values))))

    async def query(self, text: str, values: Sequence[Any]) -> list[Any]:
        """Rows as dictionaries, for the caller's own statements, with `$1`-style placeholders."""
        return await self._run(Statement(_number_placeholders(text), numbered(values), as_mappings=True))

    async def execute(self, sql: str) -> None:
        """Any number of statements, without parameters."""
        for text in split_script(sql):
            await self._run(Statement(text, {}))


class SqliteExecutor:
    """One file. A thread that writes, two that read, and while somebody listens one that watches."""

    dialect = "sqlite"
    has_one_writer = True

    def __init__(self, file: DatabaseFile) -> None:
        self.file = file
        self.writer = WriteLane(file, self._wake_watches)
        self._readers = [ReadLane(file, f"reader {number}") for number in range(1, READERS + 1)]
        self.watch = FileWatch(file)
        self._closed = False
        with _watches_lock:
            _watches.add(self.watch)
        owners: list[forks.Suspendable] = [self.writer, *self._readers, self.watch]
        for owner in owners:
            forks.register(owner)

    async def rows(self, text: str, values: Sequence[Any]) -> list[Row]:
        self._check_open()
        return await SqliteSession(self._run_alone).rows(text, values)

    @asynccontextmanager
    async def autocommit(self) -> AsyncIterator[Session]:
        self._check_open()
        yield SqliteSession(self._run_alone)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Session]:
        self._check_may_write()
        transaction = Transaction(self.writer)
        self.writer.put(transaction)
        token = _leading.set(transaction)
        try:
            await transaction.begun.future
            yield SqliteSession(transaction.run, transaction)
        except BaseException:
            transaction.finish(commit=False)
            raise
        finally:
            _leading.reset(token)
        await transaction.finish(commit=True).future

    def borrow(self, given: Any, *, transaction: bool) -> AbstractAsyncContextManager[Session]:
        if isinstance(given, Lent):
            return _borrow_connection(given, self.file.path, transaction=transaction)
        return _borrow(given)

    async def close(self) -> None:
        self._closed = True
        await self.writer.stop()
        for reader in self._readers:
            await reader.stop()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the store is closed; open a new one")

    def _check_may_write(self) -> None:
        self._check_open()
        leading = _leading.get()
        if leading is not None and leading.is_open and leading.writer is self.writer:
            raise InvalidArgument(
                "a write inside a transaction must go through its session (session=...): SQLite has one writer, "
                "so another transaction would wait for this one, which waits for it"
            )

    async def _run_alone(self, statement: Statement) -> list[Any]:
        if reads_only(statement.text):
            min(self._readers, key=lambda lane: lane.load).put(statement)
        else:
            self._check_may_write()
            self.writer.put(statement)
        rows: list[Any] = await statement.reply.future
        return rows

    def _wake_watches(self) -> None:
        """Of all executors over this file in this process; other processes notice by themselves."""
        with _watches_lock:
            watches = list(_watches)
        for watch in watches:
            if watch.path == self.file.path:
                watch.poke()


@asynccontextmanager
async def _borrow(given: Any) -> AsyncIterator[Session]:
    if not isinstance(given, SqliteSession) or given.transaction is None or not given.transaction.is_open:
        raise InvalidArgument(
            "session must be one that succeed_in (or complete_in) has handed to its write function and whose "
            f"transaction is open, not {type(given).__name__}: a connection to SQLite cannot be shared"
        )
    yield given


@asynccontextmanager
async def _borrow_connection(given: Lent, path: str, *, transaction: bool) -> AsyncIterator[Session]:
    """A blocking connection, on its own thread."""
    if not isinstance(given, LentSqlite):
        raise InvalidArgument(f"session is no connection to SQLite, and the tasks are in {path}")
    if given.path != path:
        raise InvalidArgument(
            f"session is a connection to {given.path or 'a database in memory'}, and the tasks are in {path}: "
            "a transaction that holds both needs them in one file"
        )
    with given.in_transaction() if transaction else nullcontext():
        yield given


def _number_placeholders(text: str) -> str:
    """`$1` as `?1`: `sqlite3` takes the former for a name."""
    return _PLACEHOLDER.sub(lambda match: f"?{match.group(1)}" if match.group(1) else match.group(0), text)
