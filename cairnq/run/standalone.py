"""One run of a worker in a process of its own: an engine, the keeper of its leases, and an ear for notifications."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from cairnq.pure.clock import Clock, boottime
from cairnq.pure.models import Task, TaskDef
from cairnq.run.blame import LoopWitness
from cairnq.run.emit import Emit
from cairnq.run.engine import Engine
from cairnq.run.keeper import Keeper, KeeperOptions, LeaseThread
from cairnq.run.leases import LeaseTable
from cairnq.run.options import EngineOptions
from cairnq.run.registry import Registry
from cairnq.store.backpressure import Backpressure
from cairnq.store.base import TaskStore
from cairnq.store.watch import QUEUED_CHANNEL


class Standalone:
    """Made on the loop it runs on."""

    def __init__(
        self,
        store: TaskStore,
        registry: Registry,
        queues: Sequence[str],
        options: EngineOptions,
        *,
        worker_id: str,
        beat_interval_s: float,
        emit: Emit,
        backpressure: Backpressure,
        clock: Clock = boottime,
    ) -> None:
        self._store = store
        self._registry = registry
        self._queues = frozenset(queues)
        self._options = options
        self._beat_interval_s = beat_interval_s
        self._backpressure = backpressure
        self._worker_id = worker_id
        self._emit = emit
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._keeper_ended: asyncio.Future[None] = self._loop.create_future()
        self._table = LeaseTable.private(Engine.table_capacity(registry, options))
        self.engine = Engine(
            store,
            registry,
            queues,
            options,
            table=self._table,
            worker_id=worker_id,
            emit=emit,
            clock=clock,
            submit=self._submit,
        )

    async def run_until(self, stop: asyncio.Event, *, drain_timeout_s: float) -> None:
        """Run until `stop` is set, then drain for so long. Raises only what is a bug of ours."""
        self._emit("worker.started", worker_id=self._worker_id, queues=",".join(sorted(self._queues)))
        draining = asyncio.create_task(self._drain_after(stop, drain_timeout_s), name="cairnq stop")
        try:
            await self._run()
        finally:
            draining.cancel()
            await asyncio.wait({draining})
        self._emit("worker.drained", worker_id=self._worker_id)

    def hurry(self) -> None:
        """Move the deadline of the drain, under way or to come, to now."""
        self.engine.hurry()

    async def _submit(
        self,
        name: str | TaskDef[Any, Any],
        payload: Any = None,
        *,
        queue: str = "default",
        session: Any = None,
        **options: Any,
    ) -> Task:
        await self._backpressure.admit(queue, may_wait=session is None)
        return await self._store.submit(name, payload, queue=queue, session=session, **options)

    async def _run(self) -> None:
        stop_keeper = self._start_keeper()
        try:
            unlisten = await self._store.listen([QUEUED_CHANNEL], self._heard, self._hears)
            try:
                await self._run_engine()
            finally:
                await unlisten()
        finally:
            await stop_keeper()

    async def _drain_after(self, stop: asyncio.Event, timeout_s: float) -> None:
        await stop.wait()
        for held in await self.engine.drain(self._clock() + timeout_s):
            self._emit("task.left", worker_id=self._worker_id, task_id=held.task_id, attempt=held.attempt)

    async def _run_engine(self) -> None:
        """Until the engine ends, or the keeper does, which means a bug: without it no lease is renewed."""
        running = asyncio.create_task(self.engine.run(), name="cairnq engine")
        try:
            await asyncio.wait({running, self._keeper_ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._end(running)
        if self._keeper_ended.done():
            self._keeper_ended.result()
        running.result()

    @staticmethod
    async def _end(running: asyncio.Task[None]) -> None:
        """Cancelled once it drains. Whoever is cancelled while they wait for that hands it on: then it leaves."""
        if running.done():
            return
        running.cancel()
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError:
            running.cancel()
            await asyncio.wait({running})
            raise

    def _hears(self, delivers: bool) -> None:
        """What was notified before this moment was notified to nobody."""
        if delivers:
            self.engine.wake()

    def _heard(self, _channel: str, queue: str) -> None:
        if queue in self._queues:
            self.engine.wake()

    def _start_keeper(self) -> Callable[[], Awaitable[None]]:
        """On a thread of its own, or, where the store has no sibling for one, on this loop. Returns what stops it."""
        if self._store.sibling() is None:
            stop = asyncio.Event()
            task = asyncio.create_task(self._keeper(None, _at_once).run(stop), name="cairnq keeper")
            task.add_done_callback(self._keeper_task_ended)

            async def stop_task() -> None:
                stop.set()
                await asyncio.wait({task})

            return stop_task
        witness, soon = self._witness(), self._loop.call_soon_threadsafe
        thread = LeaseThread(lambda: self._keeper(witness, soon), self._keeper_thread_ended)
        thread.start()
        return thread.stop

    def _witness(self) -> LoopWitness:
        return LoopWitness(
            self._loop,
            self.engine.handler_in,
            interval_s=self._beat_interval_s,
            lease_s=self._options.lease_s,
            clock=self._clock,
            emit=self._emit,
        )

    def _keeper(self, witness: LoopWitness | None, tell: Callable[[Callable[[], None]], object]) -> Keeper:
        """`tell(callback)` has it called on the engine's loop."""
        return Keeper(
            self._store,
            KeeperOptions(
                self._worker_id,
                self._table,
                self._options.lease_s,
                self._beat_interval_s,
                sorted(self._queues),
                lambda: list(self._registry.handlers),
            ),
            clock=self._clock,
            outage=self.engine.outage,
            emit=self._emit,
            witness=witness,
            on_changed=lambda: tell(self.engine.leases_changed),
            on_suspect=lambda: tell(self.engine.suspect_waits),
        )

    def _keeper_thread_ended(self, error: BaseException | None) -> None:
        self._loop.call_soon_threadsafe(self._keeper_is_gone, error)

    def _keeper_task_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self._keeper_is_gone(task.exception())

    def _keeper_is_gone(self, error: BaseException | None) -> None:
        if error is not None and not self._keeper_ended.done():
            self._keeper_ended.set_exception(error)


def _at_once(callback: Callable[[], None]) -> None:
    callback()
