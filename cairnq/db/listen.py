"""One LISTEN connection that proves itself: a self-test tells whether notifications really arrive."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import psycopg
from psycopg import AsyncConnection

from cairnq.db.cancelling import cancellations, heed_cancellation
from cairnq.db.statements import Statements, quote_identifier
from cairnq.pure.errors import CairnQError

SELF_TEST_TIMEOUT_S = 2.0
SELF_TEST_INTERVAL_S = 30.0
"""LISTEN can die without a word (a pooler accepts it and delivers nothing), so it is proved again this often."""

HALF_MADE_S = 1.0
"""How long a stop waits for a connection that is being made; past it nothing answers, and nothing is open yet."""

RECONNECT_MIN_S = 0.5
RECONNECT_MAX_S = 30.0

Connect = Callable[[], Awaitable[AsyncConnection[Any]]]
Notify = Callable[[str], Awaitable[None]]


class Listener:
    """Keeps a subscription alive until `stop()`: reconnects with backoff, and reports whether it delivers.

    `notify(channel)` sends an empty notification over another connection: the self-test's other half.
    Both callbacks run on the event loop and must not block.
    """

    def __init__(
        self,
        connect: Connect,
        notify: Notify,
        channels: Sequence[str],
        on_notify: Callable[[str, str], None],
        on_state: Callable[[bool], None],
    ) -> None:
        self._connect = connect
        self._notify = notify
        self._channels = channels
        self._on_notify = on_notify
        self._on_state = on_state
        self._probe = "cairnq_probe_" + secrets.token_hex(8)
        self._statements = Statements("postgres", None)
        self._delivers = False
        self._task = asyncio.create_task(self._run(), name="cairnq listener")

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _run(self) -> None:
        pause = RECONNECT_MIN_S
        while True:
            try:
                connection = await self._connected()
            except (psycopg.Error, OSError):
                connection = None  # whoever runs statements reports the outage; here it only means: not delivering
            if connection is not None:
                try:
                    if await self._serve(connection):
                        pause = RECONNECT_MIN_S
                finally:
                    self._report(False)
                    await connection.close()
            await asyncio.sleep(pause)
            pause = min(pause * 2, RECONNECT_MAX_S)

    async def _connected(self) -> AsyncConnection[Any]:
        """A new connection. One that a stop finds half-made is finished and closed: cancelled, it would stay open."""
        connecting = asyncio.ensure_future(self._connect())
        try:
            await asyncio.wait({connecting})
        except asyncio.CancelledError:
            await asyncio.wait({connecting}, timeout=HALF_MADE_S)
            if not connecting.cancel() and connecting.exception() is None:
                await connecting.result().close()
            raise
        return connecting.result()

    async def _serve(self, connection: AsyncConnection[Any]) -> bool:
        """Deliver until the connection ends or a self-test fails; returns whether it ever proved itself."""
        arrived = asyncio.Event()

        def heard(notification: psycopg.Notify) -> None:
            if notification.channel == self._probe:
                arrived.set()
            else:
                self._on_notify(notification.channel, notification.payload)

        asked = cancellations()
        connection.add_notify_handler(heard)  # of what comes with the answer to a statement
        try:
            for channel in (*self._channels, self._probe):
                statement = self._statements.get("listen", (), {"channel": quote_identifier(channel)})
                await connection.execute(statement.text.encode())
        except (psycopg.Error, OSError):
            return False
        heed_cancellation(asked)
        delivering = asyncio.create_task(_deliver(connection, heard), name="cairnq listener delivery")
        proving = asyncio.create_task(self._prove(arrived), name="cairnq listener self-test")
        try:
            await asyncio.wait({proving, delivering}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            proving.cancel()
            delivering.cancel()
            await asyncio.wait({proving, delivering})
        return self._delivers

    async def _prove(self, arrived: asyncio.Event) -> None:
        """Send ourselves a notification now and then; returns when one does not arrive."""
        while True:
            arrived.clear()
            try:
                async with asyncio.timeout(SELF_TEST_TIMEOUT_S):
                    await self._notify(self._probe)
                    await arrived.wait()
            except (TimeoutError, CairnQError):
                return
            self._report(True)
            await asyncio.sleep(SELF_TEST_INTERVAL_S)

    def _report(self, delivers: bool) -> None:
        if delivers != self._delivers:
            self._delivers = delivers
            self._on_state(delivers)


async def _deliver(connection: AsyncConnection[Any], heard: Callable[[psycopg.Notify], None]) -> None:
    """Hand notifications on until the connection ends; `_run` then makes another.

    Not by `connection.notifies()`: that wakes ten times a second though nothing comes, and hands on two turns of the
    loop after what came.
    """
    loop, wire, encoding = asyncio.get_running_loop(), connection.pgconn, connection.info.encoding
    ended = asyncio.Event()

    def read() -> None:
        try:
            wire.consume_input()
        except psycopg.Error:  # libpq has closed the descriptor: the number may soon be somebody else's
            loop.remove_reader(descriptor)
            ended.set()
        while (notified := wire.notifies()) is not None:
            channel, payload = notified.relname.decode(encoding), notified.extra.decode(encoding)
            heard(psycopg.Notify(channel, payload, notified.be_pid))

    try:
        descriptor = wire.socket
    except psycopg.Error:
        return
    loop.add_reader(descriptor, read)
    try:
        read()  # what came behind the answer to the last statement
        await ended.wait()
    finally:
        if not ended.is_set():
            loop.remove_reader(descriptor)
