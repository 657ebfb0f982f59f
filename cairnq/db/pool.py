"""A pool of psycopg connections: one per process and event loop, made lazily, so never carried across a fork."""

from __future__ import annotations

import asyncio
import logging
import os
import select
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8Dumper
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from cairnq.db.borrow import borrow
from cairnq.db.cancelling import cancellations, heed_cancellation
from cairnq.db.connection import PsycopgSession, parse_dsn
from cairnq.db.fault import Fault
from cairnq.db.finishing import Finishing
from cairnq.db.prepared import PreparedStatements
from cairnq.db.session import Row, Session
from cairnq.db.sqlstate import classify
from cairnq.db.statements import Statements
from cairnq.pure.errors import StoreClosed

_INSIST_EVERY_S = 0.02
CHECKOUT_TIMEOUT_S = 10.0
"""How long a call waits for a connection of the pool: twice the connect time-out of a DSN that sets none."""

ATTEMPT_S = 1.0
"""In an outage a waiting call makes the pool try again this often, so that work goes on within seconds after it."""

CLOSE_TIMEOUT_S = 5.0
"""How long a close waits for connections that are still being given back, as the pool does for its workers."""

_inherited: list[AsyncConnectionPool[AsyncConnection[Any]]] = []
"""A forked child keeps its parent's pools for ever: their end would be noisy, and closing them the parent's loss."""


class PsycopgExecutor:
    """Sessions over a pool of our own. `pooled`: the DSN goes through a transaction pooler, so nothing is prepared."""

    dialect = "postgres"
    has_one_writer = False

    def __init__(self, dsn: str, *, min_size: int, max_size: int, pooled: bool, what: str = "the database URL") -> None:
        """`what` names the DSN in a refusal."""
        self._settings = parse_dsn(dsn, what)
        self._min_size = min_size
        self._max_size = max_size
        self._pooled = pooled
        self._begins = False
        """Whether a statement must say that it is read committed, as no session behind the pooler is told."""
        self._closed = False
        self._latest = _LatestAttempt()
        self._prepared = PreparedStatements()
        self._finishing = Finishing()
        self._pool: AsyncConnectionPool[AsyncConnection[Any]] | None = None
        self._owner: tuple[int, asyncio.AbstractEventLoop] | None = None
        self._opening: asyncio.Lock | None = None

    @property
    def settings(self) -> dict[str, Any]:
        return self._settings

    async def connect(self) -> AsyncConnection[Any]:
        """A connection outside the pool: for checks that fail with the server's own words, and for LISTEN."""
        asked = cancellations()
        connection = await AsyncConnection.connect(make_conninfo(**self._settings), autocommit=True)
        try:
            await self._configure(connection)
            heed_cancellation(asked)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def rows(self, text: str, values: Sequence[Any]) -> list[Row]:
        asked = cancellations()
        pool = await self._ready_pool()
        connection = await self._check_out(pool)
        try:
            if self._begins:
                found = await PsycopgSession(connection).read_committed(text, values)
            elif self._pooled:
                found = await PsycopgSession(connection).rows(text, values)
            else:
                found = await self._prepared.rows(connection, text, values)
        finally:
            await self._put_back(pool, connection)
        heed_cancellation(asked)
        return found

    @asynccontextmanager
    async def autocommit(self) -> AsyncIterator[Session]:
        async with self._connection() as connection:
            yield PsycopgSession(connection)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Session]:
        asked = cancellations()
        async with self._connection() as connection:
            try:
                async with connection.transaction():
                    yield PsycopgSession(connection)
                    heed_cancellation(asked)
            except BaseException:
                self._prepared.forget(connection)
                raise

    def borrow(self, given: Any, *, transaction: bool) -> AbstractAsyncContextManager[Session]:
        return borrow(given, transaction=transaction)

    async def close(self) -> None:
        self._closed = True
        pool, self._pool = self._pool, None
        if pool is not None and self._owner == (os.getpid(), asyncio.get_running_loop()):
            await self._finishing.run(self._close(pool))

    async def _close(self, pool: AsyncConnectionPool[AsyncConnection[Any]]) -> None:
        await pool.close()
        await self._finishing.settle(CLOSE_TIMEOUT_S)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        asked = cancellations()
        pool = await self._ready_pool()
        connection = await self._check_out(pool)
        try:
            yield connection
        finally:
            await self._put_back(pool, connection)
        heed_cancellation(asked)

    async def _put_back(
        self, pool: AsyncConnectionPool[AsyncConnection[Any]], connection: AsyncConnection[Any]
    ) -> None:
        is_idle = connection.pgconn.transaction_status == TransactionStatus.IDLE  # or it has to be rolled back first
        finish = self._finishing.run_short if is_idle else self._finishing.run
        await finish(pool.putconn(connection))

    async def _check_out(self, pool: AsyncConnectionPool[AsyncConnection[Any]]) -> AsyncConnection[Any]:
        """A connection, which is to be put back.

        It asks again and again, for in an outage the pool soon gives up for whoever waits already, and tries anew only
        for whoever asks anew. It raises what the latest attempt failed with, at once where waiting will not help.
        """
        deadline = time.monotonic() + CHECKOUT_TIMEOUT_S
        while True:
            remaining = deadline - time.monotonic()
            try:
                return await pool.getconn(min(ATTEMPT_S, remaining))
            except PoolTimeout as late:
                failure = self._latest.failure
                if remaining <= ATTEMPT_S or (failure is not None and classify(failure) is Fault.CONFIGURATION):
                    raise (failure or late).with_traceback(None) from None

    async def _ready_pool(self) -> AsyncConnectionPool[AsyncConnection[Any]]:
        if self._closed:
            raise StoreClosed("the store is closed; open a new one")
        owner = (os.getpid(), asyncio.get_running_loop())
        if self._owner != owner:
            # After a fork (or in a second event loop) the old pool belongs to somebody else: it is dropped, never
            # closed, for closing would end the parent's sessions over the shared sockets.
            if self._pool is not None and self._owner is not None and self._owner[0] != owner[0]:
                _inherited.append(self._pool)
            self._owner, self._pool, self._opening = owner, None, asyncio.Lock()
            self._finishing = Finishing()
        if self._pool is None:
            assert self._opening is not None
            async with self._opening:
                if self._pool is None:
                    self._pool = await self._open_pool()
        return self._pool

    async def _open_pool(self) -> AsyncConnectionPool[AsyncConnection[Any]]:
        pool_log = logging.getLogger("psycopg.pool")
        if pool_log.level == logging.NOTSET:
            # It warns at each attempt of an outage. Whoever waits gets the error, and says it once.
            pool_log.setLevel(logging.ERROR)
        pool = self._make_pool()
        await pool.open()
        try:
            # Whoever asks while the first connection is being made would have the pool make a second one.
            await pool.wait(ATTEMPT_S)
        except PoolTimeout:  # which closes it; the one that is asked next says what is the matter
            pool = self._make_pool()
            await pool.open()
        except BaseException:
            await pool.close()
            raise
        return pool

    def _make_pool(self) -> AsyncConnectionPool[AsyncConnection[Any]]:
        return AsyncConnectionPool(
            make_conninfo(**self._settings),
            connection_class=self._latest.connection_class(),
            kwargs={"autocommit": True},
            configure=self._configure_in_pool,
            check=_check_if_it_spoke,
            min_size=self._min_size,
            max_size=self._max_size,
            reconnect_timeout=ATTEMPT_S / 2,
            open=False,
        )

    async def _configure_in_pool(self, connection: AsyncConnection[Any]) -> None:
        try:
            await self._configure(connection)
        except asyncio.CancelledError:
            _insist_on_cancellation()
            raise

    async def _configure(self, connection: AsyncConnection[Any]) -> None:
        # For transactions behind a pooler, where no setting of the session is ours.
        await connection.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)
        # Integers go as int8 whatever their size, or each size would make a prepared statement of its own.
        connection.adapters.register_dumper(int, Int8Dumper)
        if self._pooled:
            connection.prepare_threshold = None
            [(isolation,)] = await PsycopgSession(connection).rows("show default_transaction_isolation", ())
            self._begins = isolation not in ("read committed", "read uncommitted")
            return
        connection.prepare_threshold = 0
        await connection.execute(Statements(self.dialect, None).get("connection").text.encode())


class _LatestAttempt:
    """How the pool's latest attempt to connect ended; the pool itself keeps it to its log."""

    failure: psycopg.Error | None = None

    def connection_class(self) -> type[AsyncConnection[Any]]:
        latest = self

        class Connection(AsyncConnection[Any]):
            @classmethod
            async def connect(cls, *args: Any, **options: Any) -> Self:
                try:
                    connection = await super().connect(*args, **options)
                except psycopg.Error as error:
                    latest.failure = error
                    raise
                except asyncio.CancelledError:
                    _insist_on_cancellation()
                    raise
                latest.failure = None
                return connection

        return Connection


def _insist_on_cancellation() -> None:
    """Cancel the pool's worker that runs this until it has ended.

    It swallows a cancellation that meets it while it connects, and then waits for its next order. Nobody but an event
    loop at its end cancels a worker (a pool that is closed sends it an order), and with the pool left open that loop
    would wait for ever.
    """
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()

    def again() -> None:
        if not task.done():
            task.cancel()
            loop.call_later(_INSIST_EVERY_S, again)

    loop.call_soon(again)


async def _check_if_it_spoke(connection: AsyncConnection[Any]) -> None:
    """Ask the server only where an idle connection has something to read: a farewell, usually.

    A round trip per checkout would double the cost of a statement; a poll of the descriptor costs a microsecond and
    finds the connections that a restart or `pg_terminate_backend` ended.
    """
    poller = select.poll()
    poller.register(connection.pgconn.socket, select.POLLIN)
    if poller.poll(0):
        await AsyncConnectionPool.check_connection(connection)
