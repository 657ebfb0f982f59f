"""The one thread of a process that writes: what waits together is committed together.

A disk takes as long for one commit as for a hundred statements in it. Each statement still succeeds or fails alone:
SQLite undoes a failing statement by itself, and where it undid the whole transaction (a full disk), every statement
is run again in one of its own.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from cairnq.db.sqlite import faults
from cairnq.db.sqlite.delivery import Reply, Statement, deliver
from cairnq.db.sqlite.file import DatabaseFile
from cairnq.db.sqlite.lanes import Lane
from cairnq.db.sqlite.log import LogKeeper
from cairnq.db.statements import Statements
from cairnq.pure.errors import DatabaseUnavailable

MOST_TOGETHER = 512
"""Statements of one commit: some milliseconds of the file's write lock, which other processes wait for."""

FIRST_PAUSE_S, LAST_PAUSE_S = 0.0003, 0.003
"""Between two tries for the write lock, with jitter. SQLite's own waits grow to 100 ms: who waits long is starved."""

OPTIMIZE_INTERVAL_S = 900.0


@dataclass(slots=True, eq=False)
class Finish:
    """The end of a transaction that a task of an event loop leads."""

    commit: bool
    reply: Reply = field(default_factory=Reply.here)


@dataclass(slots=True, eq=False)
class Transaction:
    """Statements that a task sends one by one. The writer serves nothing else until its `Finish` comes."""

    writer: WriteLane
    begun: Reply = field(default_factory=Reply.here)
    commands: SimpleQueue[Statement | Finish] = field(default_factory=SimpleQueue)
    is_open: bool = True
    since: float = field(default_factory=time.monotonic)

    async def run(self, statement: Statement) -> list[Any]:
        self.commands.put(statement)
        rows: list[Any] = await statement.reply.future
        return rows

    def finish(self, *, commit: bool) -> Reply:
        self.is_open = False
        finish = Finish(commit)
        self.commands.put(finish)
        return finish.reply


class WriteLane(Lane[Statement | Transaction]):
    """`on_commit()` is called on the thread after each commit."""

    def __init__(self, file: DatabaseFile, on_commit: Callable[[], None]) -> None:
        super().__init__(file, "writer", writes=True)
        self._on_commit = on_commit
        self._optimization = Statements("sqlite", None).get("optimize").text
        self._ahead: deque[Statement | Transaction | Reply] = deque()
        self.log = LogKeeper(file)
        self._optimized_at = time.monotonic()
        self._has_written = False
        self._is_led = False
        self.statements = 0
        self.commits = 0

    def suspend(self, timeout_s: float) -> bool:
        """A transaction that a task leads is not waited for: that task may be the one that forks."""
        return not self._is_led and super().suspend(timeout_s)

    def begin_anew(self) -> None:
        self._ahead.clear()
        super().begin_anew()

    def _take(self) -> Statement | Transaction | Reply:
        return self._ahead.popleft() if self._ahead else super()._take()

    def _serve(self, item: Statement | Transaction) -> None:
        if isinstance(item, Transaction):
            self._lead(item)
        else:
            self._write([item])
        self._keep_log_short()

    # --- statements that stand alone ----------------------------------------------------------------

    def _write(self, batch: list[Statement]) -> None:
        try:
            with self._transaction(batch[0].since) as connection:
                for statement in batch:  # which grows meanwhile: what comes before the commit is part of it
                    self._execute(connection, statement)
                    batch += self._others(MOST_TOGETHER - len(batch))
        except Exception as error:  # noqa: BLE001 - the border of a thread: whoever waits gets it
            if len(batch) > 1:
                for statement in batch:
                    statement.reply.value = statement.reply.error = None
                    self._write_alone(statement)
                return
            batch[0].reply.error = error
        deliver(statement.reply for statement in batch)

    def _write_alone(self, statement: Statement) -> None:
        try:
            with self._transaction(statement.since) as connection:
                self._execute(connection, statement)
        except Exception as error:  # noqa: BLE001 - as above
            statement.reply.error = error
        deliver([statement.reply])

    def _others(self, most: int) -> Iterator[Statement]:
        """Statements that wait at this moment, up to the first transaction, which keeps its place."""
        self._ahead.extend(_take_waiting(self._queue, most - len(self._ahead)))
        while self._ahead and isinstance(first := self._ahead[0], Statement):
            self._ahead.popleft()
            yield first

    def _execute(self, connection: sqlite3.Connection, statement: Statement) -> None:
        """Its result or its error; raises if SQLite undid the whole transaction on the way."""
        if statement.reply.is_unwanted:
            return
        self.statements += 1
        try:
            statement.run(connection)
        except Exception as error:
            if not connection.in_transaction:
                raise
            statement.reply.error = error

    # --- transactions that a task leads -------------------------------------------------------------

    def _lead(self, transaction: Transaction) -> None:
        reply: Reply = transaction.begun
        error: Exception | None = None
        try:
            with self._transaction(transaction.since) as connection:
                self._is_led = True
                deliver([reply])
                reply = self._obey(connection, transaction)
        except _RolledBack as undone:
            reply = undone.reply
        except Exception as failure:  # noqa: BLE001 - the border of a thread: whoever waits gets it
            error = failure
        self._is_led = False
        reply.error = error
        deliver([reply])

    def _obey(self, connection: sqlite3.Connection, transaction: Transaction) -> Reply:
        """Until the end, whose reply it returns where that is a commit. Raises `_RolledBack` where it is not."""
        while True:
            command = transaction.commands.get()
            if isinstance(command, Finish):
                if not command.commit:
                    raise _RolledBack(command.reply)
                return command.reply
            self.statements += 1
            try:
                _check_still_open(connection)
                command.run(connection)
            except Exception as error:  # noqa: BLE001 - the border of a thread: whoever waits gets it
                command.reply.error = error
            deliver([command.reply])

    # --- both ---------------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self, since: float) -> Iterator[sqlite3.Connection]:
        connection = self._begin(since + self._file.busy_timeout_s)
        try:
            yield connection
            _check_still_open(connection)
            connection.execute("commit")
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("rollback")
            self._close_if_broken(error)
            raise
        self.commits += 1
        self._has_written = True
        self._on_commit()
        self._optimize_now_and_then(connection)

    def _begin(self, deadline: float) -> sqlite3.Connection:
        """Take the file's write lock, or raise if it is not free once at the deadline or after it."""
        pause = FIRST_PAUSE_S
        while True:
            connection = self._ready()
            try:
                connection.execute("begin immediate")
            except sqlite3.OperationalError as error:
                if not faults.is_busy(error):
                    self._close_if_broken(error)
                    raise
                if time.monotonic() >= deadline:
                    raise DatabaseUnavailable(
                        f"another process held the write lock of {self._file.path} for "
                        f"{self._file.busy_timeout_s * 1000:.0f} ms (busy_timeout_ms): nothing was written"
                    ) from error
            else:
                return connection
            self._guard.release()  # a fork need not wait for other processes
            time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret
            self._guard.acquire()
            pause = min(pause * 1.5, LAST_PAUSE_S)

    def _optimize_now_and_then(self, connection: sqlite3.Connection) -> None:
        if time.monotonic() - self._optimized_at >= OPTIMIZE_INTERVAL_S:
            self._optimize(connection)

    def _optimize(self, connection: sqlite3.Connection) -> None:
        """Refresh the planner's statistics where they have aged: a help only, so the next one may do what fails now."""
        self._optimized_at = time.monotonic()
        with suppress(sqlite3.OperationalError):
            connection.execute(self._optimization).fetchall()

    def _keep_log_short(self) -> None:
        """When everybody has their answers. A help only: whoever writes next meets what is wrong, and is told."""
        if self._connection is None:
            return
        try:
            self.log.keep_short(self._connection)
        except sqlite3.Error as error:
            self._close_if_broken(error)

    def _retire(self) -> None:
        if self._has_written and self._connection is not None:
            self._optimize(self._connection)


def _check_still_open(connection: sqlite3.Connection) -> None:
    """Errors such as a full disk undo the transaction on the way."""
    if not connection.in_transaction:
        raise DatabaseUnavailable("SQLite has rolled the transaction back after an error; nothing of it was kept")


class _RolledBack(Exception):
    """The task that leads a transaction wants it undone, and is answered in `reply`."""

    def __init__(self, reply: Reply) -> None:
        super().__init__()
        self.reply = reply


def _take_waiting(queue: SimpleQueue[Any], most: int) -> list[Any]:
    """What waits in the queue at this moment, in order."""
    taken: list[Any] = []
    try:
        while len(taken) < most:
            taken.append(queue.get_nowait())
    except Empty:
        pass
    return taken
