"""Keeps the leases of one standalone worker: beats in time, looks for what dead workers left and for a blocked loop."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cairnq.db.replies import within
from cairnq.pure.clock import Clock
from cairnq.pure.errors import DatabaseUnavailable
from cairnq.run.beats import Beater, LeaseKey
from cairnq.run.blame import LoopWitness
from cairnq.run.emit import Emit
from cairnq.run.leases import LeaseTable
from cairnq.run.outage import Outage, retry_delay_s
from cairnq.store.base import TaskStore

T = TypeVar("T")
RECOVERY_INTERVAL_S = 5.0
RECOVERY_JITTER = 0.2
RECOVERY_ROWS = 1_000
STOP_PATIENCE_S = 2.0
"""On a dead network psycopg takes ten seconds to give a statement up; a drain has better things to wait for."""


@dataclass(frozen=True, slots=True)
class KeeperOptions:
    worker_id: str
    table: LeaseTable
    lease_s: float
    beat_interval_s: float
    queues: Sequence[str]
    names: Callable[[], Sequence[str]]
    """Of the tasks that the worker has handlers for."""

    @property
    def recovery_interval_s(self) -> float:
        return min(self.lease_s / 3, RECOVERY_INTERVAL_S)


class Keeper:
    """Runs on whatever loop `run` is awaited on: the lease thread's, so that the handlers' may be blocked."""

    def __init__(
        self,
        store: TaskStore,
        options: KeeperOptions,
        *,
        clock: Clock,
        outage: Outage,
        emit: Emit,
        witness: LoopWitness | None,
        on_changed: Callable[[], object],
        on_suspect: Callable[[], object],
    ) -> None:
        """`on_changed()` is called after a verdict was written, `on_suspect()` when a suspect waits to run alone.

        Where `store` has siblings the keeper uses one, so that it never waits for the connections of others.
        """
        self._origin = store
        self._options = options
        self._clock = clock
        self._outage = outage
        self._emit = emit
        self._witness = witness
        self._on_changed = on_changed
        self._on_suspect = on_suspect
        self._store = store.sibling() or store
        self._beater = Beater(self._store, clock)
        self._failures = 0
        self._next_full_beat = clock() + options.beat_interval_s * random.uniform(0.5, 1.0)  # noqa: S311 - jitter
        self._unsure: frozenset[LeaseKey] = frozenset()
        self._closing: set[asyncio.Task[None]] = set()

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set; what is under way then is given up. Raises only what is a bug of ours."""
        keeping = asyncio.create_task(self._keep(), name="cairnq beats")
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({keeping, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (keeping, stopping):
                task.cancel()
            await asyncio.wait({keeping, stopping})
            await self._close()
        if not keeping.cancelled():
            keeping.result()

    async def _keep(self) -> None:
        next_beat = self._next_full_beat
        next_recovery = self._clock() + random.random() * self._options.recovery_interval_s  # noqa: S311 - jitter
        while True:
            await asyncio.sleep(max(0.0, min(next_beat, next_recovery) - self._clock()))
            if self._clock() >= next_beat:
                next_beat = await self._beat()
            elif self._clock() >= next_recovery:
                next_recovery = await self._recover()

    async def _close(self) -> None:
        if self._store is not self._origin:
            await self._store.close()
        await asyncio.gather(*self._closing)

    async def _beat(self) -> float:
        """Returns the instant of the next beat, which may be one for the rows alone that somebody has locked."""
        if self._witness is not None:
            self._witness.look(self._options.table)
        began = self._clock()
        is_full = began >= self._next_full_beat
        tables = [(self._options.worker_id, self._options.table)]
        only = None if is_full else self._unsure
        report = await self._ask("beat", lambda: self._beater.beat(tables, only=only))
        if report is None:
            self._next_full_beat = began
            return self._clock() + min(retry_delay_s(self._failures), self._options.beat_interval_s)
        if report.changed:
            self._on_changed()
        if is_full:
            self._next_full_beat = began + self._options.beat_interval_s
        self._unsure = report.unsure
        if report.retry_within_s is None:
            return self._next_full_beat
        return min(self._next_full_beat, self._clock() + report.retry_within_s)

    async def _recover(self) -> float:
        """One statement; at once again while there is a full statement's worth."""
        rows = await self._ask("recover", self._recover_some)
        if rows is None:
            return self._clock() + self._options.recovery_interval_s
        if rows:
            self._emit("tasks.recovered", tasks=rows)
        if rows >= RECOVERY_ROWS:
            return self._clock()
        if await self._ask("recover", self._look_for_suspects):
            self._on_suspect()
        jitter = random.uniform(1 - RECOVERY_JITTER, 1 + RECOVERY_JITTER)  # noqa: S311
        return self._clock() + self._options.recovery_interval_s * jitter

    async def _recover_some(self) -> int:
        return await within(self._store.recover(RECOVERY_ROWS), self._options.lease_s / 6, "recovery")

    async def _look_for_suspects(self) -> bool:
        options = self._options
        look = self._store.suspect_waits(options.queues, options.names())
        return await within(look, options.lease_s / 6, "a look for suspects")

    async def _ask(self, operation: str, ask: Callable[[], Awaitable[T]]) -> T | None:
        """The answer; None when the database gave none, which is reported once an outage."""
        asked_at = self._clock()
        try:
            answer = await ask()
        except Exception as error:
            if not self._outage.is_of_database(error):
                raise
            self._failures += 1
            self._outage.failed(error, operation, asked_at=asked_at)
            if isinstance(error, DatabaseUnavailable):
                self._reconnect()
            return None
        self._failures = 0
        self._outage.worked(operation)
        return answer

    def _reconnect(self) -> None:
        """A connection that did not answer may take seconds to be given up; the next beat cannot wait for that."""
        sibling = self._origin.sibling()
        if sibling is None:
            return
        old, self._store = self._store, sibling
        self._beater = Beater(self._store, self._clock)
        closing = asyncio.get_running_loop().create_task(old.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


class LeaseThread:
    """A keeper on a thread of its own, with a loop of its own."""

    def __init__(self, make_keeper: Callable[[], Keeper], on_failed: Callable[[BaseException], None]) -> None:
        """`on_failed(error)` is called, on the thread, if the keeper ended with a bug of ours."""
        self._make_keeper = make_keeper
        self._on_failed = on_failed
        self._ended = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cairnq-leases", daemon=True)

    def start(self) -> None:
        """Returns when the thread's loop runs."""
        self._thread.start()
        self._started.wait()

    async def stop(self) -> None:
        """Returns when the thread has ended, or is left to a connection that does not."""
        if self._loop is not None and self._stop is not None and not self._ended.is_set():
            with contextlib.suppress(RuntimeError):  # its loop was closed in this very moment
                self._loop.call_soon_threadsafe(self._stop.set)
        await asyncio.to_thread(self._thread.join, STOP_PATIENCE_S)

    def _run(self) -> None:
        try:
            asyncio.run(self._keep())
        except Exception as error:  # noqa: BLE001 - a thread's border: handed to the worker, which ends with it
            self._on_failed(error)
        finally:
            self._ended.set()
            self._started.set()

    async def _keep(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._started.set()
        await self._make_keeper().run(self._stop)
