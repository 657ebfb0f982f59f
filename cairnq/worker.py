"""A worker in a process of its own: registers handlers, runs until told to stop, drains."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Self

from cairnq.db.session import PgExecutor
from cairnq.pure import arguments, ids
from cairnq.pure.clock import boottime
from cairnq.pure.errors import CairnQError, InvalidArgument
from cairnq.pure.models import TaskDef
from cairnq.run.decorating import HandlerFn, Registering
from cairnq.run.emit import Report, emit_to
from cairnq.run.options import EngineOptions
from cairnq.run.registry import Registry
from cairnq.run.standalone import Standalone
from cairnq.run.stopping import StopSignals
from cairnq.store.backpressure import DEFAULT_POLL_MS, DEFAULT_WAIT_MS, Backpressure, QueueDepthLimit
from cairnq.store.base import TaskStore
from cairnq.store.postgres import PostgresStore
from cairnq.store.sqlite import DEFAULT_BUSY_TIMEOUT_MS, SqliteStore

DRAIN_TIMEOUT_S = 25.0
"""Under the 30 s that systemd's and Kubernetes' defaults leave between SIGTERM and SIGKILL."""

MAX_MS = 7 * 86_400_000
"""A week: a duration beyond it is a mistake of units."""


class Worker(Registering):
    """Claims tasks of `queues` whose names have a handler here, and runs them.

    `concurrency`: handler calls at a time. `lease_ms`: how long a claim holds without a renewal, which comes every
    `heartbeat_interval_ms` (a third of it) from a thread of its own. `poll_interval_ms`: how often an idle worker
    looks, though a notification usually wakes it. `claim_batch`: the most tasks of one claim. `retry_backoff_ms`,
    `retry_backoff_max_ms`: the wait before the second attempt, which doubles up to the maximum. `max_run_ms`: at
    this age a call is cancelled and fails retryably. `max_in_flight_bytes`: bounds the payloads in memory.
    `resources`: amounts, where they differ from the registry's. `max_queue_depth`, `max_queue_wait_ms`,
    `queue_poll_interval_ms`: hold back what handlers submit, as on `CairnQ`. `on_error(error, info)`: told, on any
    thread, of errors that no caller sees (the database is away, a handler blocks the loop); they are logged too.
    `registry`: handlers, where they are not registered here.
    """

    def __init__(
        self,
        store: TaskStore,
        queues: Sequence[str] = ("default",),
        *,
        concurrency: int = 1,
        lease_ms: int = 30_000,
        heartbeat_interval_ms: int | None = None,
        poll_interval_ms: int = 500,
        claim_batch: int | None = None,
        retry_backoff_ms: int = 1_000,
        retry_backoff_max_ms: int = 30_000,
        max_run_ms: int | None = None,
        max_in_flight_bytes: int | None = None,
        resources: Mapping[str, int] | None = None,
        max_queue_depth: QueueDepthLimit | None = None,
        max_queue_wait_ms: int = DEFAULT_WAIT_MS,
        queue_poll_interval_ms: int = DEFAULT_POLL_MS,
        on_error: Report | None = None,
        registry: Registry | None = None,
    ) -> None:
        self.registry = Registry(resources=resources) if registry is None else registry
        self._queues = arguments.names(queues, "queues")
        if not self._queues:
            raise InvalidArgument("a worker needs at least one queue")
        self._options = EngineOptions(
            concurrency=concurrency,
            lease_s=_seconds("lease_ms", lease_ms, least=500),
            poll_interval_s=_seconds("poll_interval_ms", poll_interval_ms),
            claim_batch=claim_batch,
            retry_backoff_ms=retry_backoff_ms,
            retry_backoff_max_ms=retry_backoff_max_ms,
            max_run_s=None if max_run_ms is None else _seconds("max_run_ms", max_run_ms),
            max_in_flight_bytes=max_in_flight_bytes,
            resources=resources or {},
        )
        self._beat_interval_s = _beat_interval_s(heartbeat_interval_ms, lease_ms)
        self._make_backpressure = partial(
            Backpressure,
            limit=max_queue_depth,
            max_wait_ms=max_queue_wait_ms,
            poll_interval_ms=queue_poll_interval_ms,
        )
        self._make_backpressure(store)  # a bad limit is told here, not in a handler
        self._emit = emit_to(on_error)
        self._store = store
        self._reopen: Callable[[], TaskStore] | None = None
        self._lock = threading.Lock()
        self._running: _Running | None = None
        self._stop_requested = False
        self._ran_before = False
        self._worker_id = ids.new_worker_id()

    @classmethod
    def postgres(
        cls,
        source: str | PgExecutor,
        *,
        queues: Sequence[str] = ("default",),
        min_size: int = 1,
        max_size: int = 10,
        schema: str | None = None,
        listen_database: str | None = None,
        **options: Any,
    ) -> Self:
        """A worker with a store of its own; see `CairnQ.postgres` for these arguments and the class for the others."""

        def open_store() -> TaskStore:
            return PostgresStore(
                source, min_size=min_size, max_size=max_size, schema=schema, listen_database=listen_database
            )

        worker = cls(open_store(), queues, **options)
        worker._reopen = open_store
        return worker

    @classmethod
    def sqlite(
        cls,
        path: str | os.PathLike[str],
        *,
        queues: Sequence[str] = ("default",),
        busy_timeout_ms: int = DEFAULT_BUSY_TIMEOUT_MS,
        **options: Any,
    ) -> Self:
        """A worker with a store of its own; see `CairnQ.sqlite` for these arguments and the class for the others."""

        def open_store() -> TaskStore:
            return SqliteStore(path, busy_timeout_ms=busy_timeout_ms)

        worker = cls(open_store(), queues, **options)
        worker._reopen = open_store
        return worker

    @property
    def worker_id(self) -> str:
        """Names this worker in the database. A second run gets another one."""
        return self._worker_id

    def register(
        self,
        name: str | TaskDef[Any, Any],
        fn: HandlerFn,
        *,
        batch: int | None = None,
        concurrency: int | None = None,
        resource: str | None = None,
        forget: bool = False,
    ) -> None:
        """See `Registry.register`."""
        self.registry.register(name, fn, batch=batch, concurrency=concurrency, resource=resource, forget=forget)

    async def run(self, *, concurrency: int | None = None, drain_timeout: float = DRAIN_TIMEOUT_S) -> None:
        """Run tasks until `stop()` is called and the drain has ended.

        `drain_timeout`: seconds from then until running calls are cancelled and given back. Raises `ConnectError`
        if the database cannot be used at the start; later outages are waited out. Cancelled, it drains at once.
        """
        await self._run_once(concurrency, drain_timeout, lambda: None)

    @asynccontextmanager
    async def background(
        self, *, concurrency: int | None = None, drain_timeout: float = DRAIN_TIMEOUT_S
    ) -> AsyncIterator[Self]:
        """Run while the body of the `async with` does; on leaving, stop and drain.

        Entered once the worker has started. A failure of the run is raised, at the latest on leaving.
        """
        started = asyncio.Event()
        running = asyncio.create_task(self._run_once(concurrency, drain_timeout, started.set))
        starting = asyncio.create_task(started.wait())
        try:
            await asyncio.wait({running, starting}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                await running
            yield self
        finally:
            starting.cancel()
            if not running.done():
                self.stop()
            await running

    def serve(self, *, concurrency: int | None = None, drain_timeout: float = DRAIN_TIMEOUT_S) -> None:
        """Run until SIGTERM or SIGINT, then drain; blocks. For the main thread of a process.

        Repeated signals within a second are one. SIGINT after that: no more waiting, cancel and give back.
        """
        if threading.current_thread() is not threading.main_thread():
            raise CairnQError("serve() handles signals, so it needs the main thread; use run() elsewhere")
        asyncio.run(self._serve(concurrency, drain_timeout))

    def stop(self) -> None:
        """Stop claiming and drain. From any thread, any number of times; before a run it makes that run end at once."""
        with self._lock:
            if self._running is None:
                self._stop_requested = True
            else:
                self._running.loop.call_soon_threadsafe(self._running.stop.set)

    async def close(self) -> None:
        """Stop, wait for the drain, and close the store if it is this worker's own."""
        running = self._running
        if running is not None:
            self.stop()
            await running.ended.wait()
        await self._close_own_store()

    async def _run_once(self, concurrency: int | None, drain_timeout: float, on_started: Callable[[], None]) -> None:
        options = self._options if concurrency is None else replace(self._options, concurrency=concurrency)
        with self._lock:
            if self._running is not None:
                raise CairnQError("this worker is running already")
            self._running = running = _Running(asyncio.get_running_loop())
            if self._stop_requested:
                running.stop.set()
            if self._ran_before:
                self._worker_id = ids.new_worker_id()
            self._ran_before = True
        try:
            async with AsyncExitStack() as closing:
                closing.push_async_callback(self._close_own_store)
                await self._run(options, running, drain_timeout, on_started)
        finally:
            with self._lock:
                self._running = None
                self._stop_requested = False
            running.ended.set()

    async def _run(
        self, options: EngineOptions, running: _Running, drain_timeout: float, on_started: Callable[[], None]
    ) -> None:
        await self._store.connect()
        running.standalone = standalone = Standalone(
            self._store,
            self.registry,
            self._queues,
            options,
            worker_id=self._worker_id,
            beat_interval_s=self._beat_interval_s,
            emit=self._emit,
            backpressure=self._make_backpressure(self._store),
        )
        on_started()
        await standalone.run_until(running.stop, drain_timeout_s=drain_timeout)

    async def _serve(self, concurrency: int | None, drain_timeout: float) -> None:
        loop = asyncio.get_running_loop()
        signals = StopSignals(stop=self.stop, hurry=self._hurry)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, partial(self._got, signals, number))
        try:
            await self.run(concurrency=concurrency, drain_timeout=drain_timeout)
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    @staticmethod
    def _got(signals: StopSignals, number: signal.Signals) -> None:
        signals.got(number, boottime())

    def _hurry(self) -> None:
        if self._running is not None and self._running.standalone is not None:
            self._running.standalone.hurry()

    async def _close_own_store(self) -> None:
        if self._reopen is not None:
            await self._store.close()
            self._store = self._reopen()


class _Running:
    """What a run that is under way can be told."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.stop = asyncio.Event()
        self.ended = asyncio.Event()
        self.standalone: Standalone | None = None


def _seconds(name: str, value_ms: int, *, least: int = 1, most: int = MAX_MS) -> float:
    return arguments.integer(value_ms, name, least=least, most=most) / 1000


def _beat_interval_s(heartbeat_interval_ms: int | None, lease_ms: int) -> float:
    """At least two beats a lease, or one that is late would lose it."""
    if heartbeat_interval_ms is None:
        return lease_ms / 3000
    return _seconds("heartbeat_interval_ms", heartbeat_interval_ms, most=lease_ms // 2)
