"""The worker itself: claims, calls handlers, settles, drains. No signals, no threads but those of plain handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from cairnq.pure.clock import Clock, boottime
from cairnq.pure.models import Held, Task
from cairnq.pure.pace import Pace
from cairnq.pure.quota import PayloadBudget, Usage
from cairnq.run import demand
from cairnq.run.attempt import Attempt
from cairnq.run.calls import Cut
from cairnq.run.claimer import Claimer
from cairnq.run.context import Desk
from cairnq.run.current import name_in
from cairnq.run.emit import Emit
from cairnq.run.executor import Executor
from cairnq.run.holdings import Holdings, Observer
from cairnq.run.kept import Kept
from cairnq.run.leases import LeaseTable
from cairnq.run.options import EngineOptions
from cairnq.run.outage import Outage
from cairnq.run.registry import Registry
from cairnq.run.settler import Settler
from cairnq.run.watch import Pulse, TrustWatch
from cairnq.store.base import TaskStore
from cairnq.store.wait import DoneWatch, Waiter

__all__ = ["Engine", "EngineOptions"]


class Engine:
    """Made and used on one running event loop. Somebody else beats the leases that stand in `table`."""

    def __init__(
        self,
        store: TaskStore,
        registry: Registry,
        queues: Sequence[str],
        options: EngineOptions,
        *,
        table: LeaseTable,
        worker_id: str,
        emit: Emit,
        clock: Clock = boottime,
        submit: Callable[..., Awaitable[Task]] | None = None,
        observer: Observer | None = None,
        budget: PayloadBudget | None = None,
    ) -> None:
        """`submit` is what contexts submit with, where that is more than the store's own (backpressure).

        `observer` hears of every attempt, for statistics. `budget` is one that is shared with other workers, in place
        of the options' own.
        """
        self._options = options
        self._clock = clock
        self._outage = Outage(emit, clock)
        self._changed = asyncio.Event()
        self._stopped = asyncio.Event()
        self._deadline = float("inf")
        self._draining: asyncio.Task[list[Held]] | None = None
        self._done = DoneWatch(store)
        self._usage = usage = Usage()
        budget = budget or PayloadBudget(options.max_in_flight_bytes)
        self._holdings = Holdings(table, budget, options.lease_s, clock, observer)
        pace = Pace()
        self._settler = Settler(
            store,
            worker_id,
            lease_s=options.lease_s,
            clock=clock,
            outage=self._outage,
            lose=self._lose,
            on_written=self._room_changed,
            hold_s=lambda: pace.hold_s() if self._claimer.is_near else 0.0,
        )
        self._kept = Kept(table, self._outage, clock, on_again=self._claim_again)
        desk = Desk(
            store=store,
            worker_id=worker_id,
            options=options,
            clock=clock,
            outage=self._outage,
            settle=self._settler.put,
            lose=self._lose,
            on_settled=self._room_changed,
            submit=submit or store.submit,
            wait=Waiter(store, self._done).wait,
        )
        self._executor = Executor(
            registry,
            self._holdings,
            usage,
            desk,
            pace=pace,
            emit=emit,
            on_room=self._room_changed,
            is_claiming=lambda: self._claimer.is_busy,
        )
        self._demand = demand.Demand(registry, options, usage, self._holdings, pace)
        self._claimer = Claimer(
            desk,
            queues,
            demand=self._demand,
            holdings=self._holdings,
            executor=self._executor,
            settler=self._settler,
            pace=pace,
            kept=self._kept,
            on_idle=self._changed.set,
        )
        self._watch = TrustWatch(self._holdings, options.lease_s, clock, self._lose, on_looked=self._kept.look)
        self._pulse = Pulse(table, clock, interval_s=min(1.0, options.lease_s / 6))
        table.concurrency = options.concurrency

    @property
    def outage(self) -> Outage:
        """For whoever else uses this worker's database: one outage is two events, however many notice it."""
        return self._outage

    table_capacity = staticmethod(demand.table_capacity)
    """Leases that this worker may hold at once: running ones, some ahead, and as many again on their way in and out."""

    def set_resource(self, name: str, amount: int) -> None:
        """So many calls may share it from now on; those under way go on. 0: none of its names is claimed."""
        self._demand.set_resource(name, amount)
        self._room_changed()
        self.wake()

    def resource_in_use(self, name: str) -> int:
        """Calls that share it, under way or about to start; and while a claim is out, all that it may bring."""
        on_their_way = self._options.concurrency if self._claimer.is_busy else 0
        return self._usage.by_resource[name] + on_their_way

    def bytes_freed(self) -> None:
        """Other workers that share the byte budget gave up some of it: look whether there is room now."""
        self._executor.admit()
        self._room_changed()

    def handler_in(self, task: asyncio.Task[Any]) -> str | None:
        """The name of the handler whose call `task` is, or (from Python 3.12 on) was made by. From any thread."""
        names = (call.handler.name for call in self._executor.running if call.task is task)
        return next(names, None) or name_in(task)

    @property
    def is_in_doubt(self) -> bool:
        """After a lost reply, until the database was asked: rows may be this worker's that it does not know of."""
        return self._claimer.doubt.is_on

    @property
    def overrun(self) -> int:
        """Calls past max_run that were settled so and have not returned: they hold their room until they do."""
        return sum(call.cut is Cut.TIMEOUT for call in self._executor.running)

    async def run(self) -> None:
        """Claim and run tasks until a `drain` ended. Raises only what is a bug in cairnq."""
        self._show_claiming()
        parts = [
            asyncio.create_task(part, name=f"cairnq {name}")
            for name, part in (
                ("claimer", self._claimer.run()),
                ("settler", self._settler.run()),
                ("trust", self._watch.run()),
                ("pulse", self._pulse.run()),
                ("stop", self._stopped.wait()),
            )
        ]
        try:
            done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for part in done:
                part.result()
        except asyncio.CancelledError:
            try:
                await self.drain(self._clock())
            finally:  # one that was cancelled too goes no further
                if self._draining is not None:
                    self._draining.cancel()
            raise
        finally:
            self._holdings.table.is_claiming = 0
            self._executor.cut_short()
            self._executor.abandon()
            for part in parts:
                part.cancel()
            await asyncio.wait(parts)
            self._executor.close()
            await self._done.close()

    def wake(self) -> None:
        """There may be work: look now, after 25 ms and after 100 ms, then poll. Kept until a closed gate opens."""
        self._claimer.wake()

    def suspect_waits(self) -> None:
        """A task that must run alone is due: it is claimed once nothing runs here. On the engine's loop."""
        self._claimer.suspect_waits()

    def set_polling(self, polling: bool) -> None:
        """False: somebody else proves that there is nothing to look for, and wakes this engine."""
        self._claimer.set_polling(polling)

    def quiesce(self) -> None:
        """Stop claiming; rows that never started are released."""
        self._claimer.quiesce()
        self._show_claiming()
        self._executor.release_waiting()
        self._settler.hurry()

    def resume(self) -> None:
        """Claim again, after the outcome of every release is known."""
        self._claimer.resume()
        self._show_claiming()

    def leases_changed(self) -> None:
        """Verdicts or cancel requests were written into the table: look. To be called on the engine's loop."""
        self._watch.look()

    async def drain(self, deadline: float) -> list[Held]:
        """Quiesce, run out, settle; at `deadline` (an instant of the clock) cancel, release, and stop.

        Returns the attempts that could not be ended: plain functions still on their threads, handlers that
        swallowed their cancellation, outcomes that the database did not take. Their contexts write nothing any
        more; their leases end with the process. Called again, it moves the deadline forward, never back.
        """
        self._deadline = min(self._deadline, deadline)
        self._changed.set()
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain(), name="cairnq drain")
        return await asyncio.shield(self._draining)

    def hurry(self) -> None:
        """Move the deadline of a drain that is under way to now."""
        self._deadline = float("-inf")
        self._changed.set()

    async def _drain(self) -> list[Held]:
        self.quiesce()
        if not await self._until(self._is_idle, lambda: self._deadline):
            self._executor.cut_short()
            last = self._clock() + self._options.cancel_grace_s
            await self._until(self._is_done_cancelling, lambda: last)
        if self.is_in_doubt:
            await self._claimer.doubt.clear_up_before_leaving(self._options.cancel_grace_s)
        self._executor.abandon()
        left = [attempt.held for attempt in self._holdings]
        self._stopped.set()
        return left

    async def _until(self, condition: Callable[[], bool], deadline: Callable[[], float]) -> bool:
        """Whether `condition()` came true before `deadline()`, which may change meanwhile."""
        loop = asyncio.get_running_loop()
        while not condition():
            left = deadline() - self._clock()
            if left <= 0:
                return False
            self._changed.clear()
            timer = None if left == float("inf") else loop.call_later(left, self._changed.set)
            try:
                await self._changed.wait()
            finally:
                if timer is not None:
                    timer.cancel()
        return True

    def _is_idle(self) -> bool:
        """What is still held then, a transaction of a handler settles that outlives its call."""
        return self._executor.is_idle and self._settler.is_idle and not self._claimer.is_busy and not self._holdings

    def _is_done_cancelling(self) -> bool:
        """What is left runs on threads, and waiting does not help."""
        return not self._executor.has_cancellable and self._settler.is_idle and not self._claimer.is_busy

    def _show_claiming(self) -> None:
        self._holdings.table.is_claiming = int(not self._claimer.is_quiesced)

    def _claim_again(self) -> None:
        self._claimer.look_again()

    def _lose(self, attempt: Attempt, why: str) -> None:
        self._kept.losing(attempt)
        self._executor.lose(attempt, why)
        self._room_changed()

    def _room_changed(self) -> None:
        self._claimer.room_changed()
        self._changed.set()
