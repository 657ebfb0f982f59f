"""Runs handlers: an attempt is started, performed, resolved to an outcome, and handed to the settler."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from cairnq.pure import envelope as envelopes
from cairnq.pure.models import Settlement
from cairnq.pure.quota import Usage
from cairnq.run import outcomes
from cairnq.run.attempt import Attempt
from cairnq.run.blocking import BlockingContext
from cairnq.run.calls import Call, Cut, Ended, Phase
from cairnq.run.context import Desk, TaskContext
from cairnq.run.current import mark_log_records, performing
from cairnq.run.emit import Emit
from cairnq.run.holdings import Holdings
from cairnq.run.registry import Handler, Registry
from cairnq.run.threads import Threads

SOLITUDE_S = 10.0
"""Seconds for which a suspect waits to be alone, and for which nothing starts beside it."""


class Executor:
    """Calls count against `usage` from the moment their rows are held until their handler has really returned."""

    def __init__(
        self,
        registry: Registry,
        holdings: Holdings,
        usage: Usage,
        desk: Desk,
        *,
        emit: Emit,
        on_room: Callable[[], None],
    ) -> None:
        """`on_room()` is called whenever a call returned."""
        self._registry = registry
        self._holdings = holdings
        self._usage = usage
        self._desk = desk
        self._emit = emit
        self._on_room = on_room
        self._waiting: deque[Call] = deque()
        self._running: set[Call] = set()
        self._solitude: tuple[Call, float] | None = None
        self._by_deadline: deque[Call] = deque()
        self._deadline_timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        mark_log_records()
        self._threads = Threads(desk.options.concurrency, "cairnq-handler")

    @property
    def is_idle(self) -> bool:
        return not self._running and not self._waiting

    @property
    def has_cancellable(self) -> bool:
        """Some call that runs is a coroutine."""
        return any(call.task is not None for call in self._running)

    @property
    def has_waiting(self) -> bool:
        """Held calls that may not start yet, for want of room in the byte budget."""
        return bool(self._waiting)

    @property
    def running(self) -> Iterable[Call]:
        return tuple(self._running)

    def accept(self, attempts: Iterable[Attempt]) -> None:
        """Take over held attempts, in the order of the claim; those that may start do so now."""
        for handler, group in self._by_handler(attempts).items():
            size = handler.batch or 1
            for first in range(0, len(group), size):
                self._enqueue(handler, group[first : first + size])
        self.admit()

    def release_waiting(self) -> None:
        """Give back what never started."""
        while self._waiting:
            call = self._waiting.popleft()
            self._leave(call)
            for attempt in call.attempts:
                self._desk.settle(attempt, outcomes.released(attempt, started=False))

    def lose(self, attempt: Attempt, why: str) -> None:
        """The lease is gone: flag the context first, then cancel the handler, and settle nothing."""
        if attempt.slot is None:
            return
        attempt.flag_lost()
        attempt.close(None)
        task = attempt.task
        self._emit("lease.lost", task_id=task.id, name=task.name, attempt=task.attempt, reason=why)
        call = attempt.call
        if call is None or any(other.slot is not None for other in call.attempts):
            return
        if call.phase is Phase.WAITING:
            self._waiting.remove(call)
            self._leave(call)
        else:
            call.cut_short(Cut.LOST)

    def cut_short(self) -> None:
        """The worker's time is up: cancel every handler that can be cancelled."""
        for call in self.running:
            call.cut_short(Cut.DRAIN)

    def abandon(self) -> list[Attempt]:
        """Give up on the calls that do not return; their contexts write nothing any more."""
        left = [attempt for call in self._running for attempt in call.attempts if attempt.slot is not None]
        for call in self._running:
            call.seal()
        for attempt in left:
            attempt.flag_lost()
        return left

    def close(self) -> None:
        if self._deadline_timer is not None:
            self._deadline_timer.cancel()
        self._threads.close()

    def _by_handler(self, attempts: Iterable[Attempt]) -> dict[Handler, list[Attempt]]:
        groups: dict[Handler, list[Attempt]] = {}
        for attempt in attempts:
            handler = self._registry.handlers.get(attempt.task.name)
            if handler is None:
                error = envelopes.no_handler(attempt.task.name)
                self._desk.settle(attempt, outcomes.failed(attempt, error, self._desk.options))
            else:
                groups.setdefault(handler, []).append(attempt)
        return groups

    def _enqueue(self, handler: Handler, attempts: list[Attempt]) -> None:
        contexts = [TaskContext(attempt, self._desk) for attempt in attempts]
        call = Call(handler, attempts, contexts, self._desk.clock())
        self._usage.take(handler.name, handler.resource)
        self._holdings.table.in_flight_calls = self._usage.calls
        self._waiting.append(call)

    def _leave(self, call: Call) -> None:
        call.phase = Phase.RETURNED
        call.seal()
        self._usage.give(call.handler.name, call.handler.resource)
        self._holdings.table.in_flight_calls = self._usage.calls

    def admit(self) -> None:
        """Start what may start, in order: a large payload is not overtaken for ever by small ones."""
        now = self._desk.clock()
        while self._waiting and self._may_start(self._waiting[0], now):
            call = self._waiting[0]
            for attempt in call.attempts:
                if not attempt.is_trusted(now):
                    self.lose(attempt, "its trust window ended before it could start")
            if call.phase is Phase.WAITING:
                self._waiting.popleft()
                self._start(call, now)

    def _may_start(self, call: Call, now: float) -> bool:
        if self._running and (wait := self._kept_apart_until(call) - now) > 0:
            self._loop.call_later(wait, self.admit)
            return False
        return self._holdings.budget.admits(call.bytes)

    def _kept_apart_until(self, call: Call) -> float:
        """A suspect runs alone for a while, lest it take its neighbours with it; but nobody waits long for that."""
        if call.is_suspect:
            return call.waiting_since + SOLITUDE_S
        return self._solitude[1] if self._solitude is not None else 0.0

    def _start(self, call: Call, now: float) -> None:
        call.phase = Phase.RUNNING
        call.drop_lost()
        self._running.add(call)
        self._holdings.budget.start(call.bytes)
        self._tell_oversized(call)
        if call.is_suspect:
            self._solitude = call, now + SOLITUDE_S
        self._set_deadline(call, now)
        if call.handler.is_async:
            call.task = self._loop.create_task(self._perform(call))
            call.task.add_done_callback(partial(self._task_ended, call))
        else:
            for attempt in call.attempts:
                attempt.start(now)
            contexts = [BlockingContext(context, self._loop) for context in call.contexts]
            self._threads.run(partial(self._perform_on_thread, call, contexts))

    async def _perform(self, call: Call) -> Ended:
        # Not before this very moment: should a neighbour kill the process until then, the attempt is not spent.
        for attempt in call.attempts:
            if attempt.slot is not None:
                attempt.start(self._desk.clock())
        try:
            with performing(call.attempts[0].task):
                return Ended(value=await call.handler.fn(*_arguments(call.handler, call.contexts)))
        except BaseException as error:  # the border to the handler: whatever it raises is an outcome
            if isinstance(error, GeneratorExit) and not self._loop.is_running():
                raise  # nobody raised it: the loop is over, and what it left is put away
            return Ended(error=error)

    def _perform_on_thread(self, call: Call, contexts: list[BlockingContext]) -> None:
        try:
            with performing(call.attempts[0].task):
                ended = Ended(value=call.handler.fn(*_arguments(call.handler, contexts)))
        except BaseException as error:  # noqa: BLE001 - the border to the handler: whatever it raises is an outcome
            ended = Ended(error=error)
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._thread_ended, call, ended)

    def _task_ended(self, call: Call, task: asyncio.Task[Ended]) -> None:
        self._returned(call, Ended(error=asyncio.CancelledError()) if task.cancelled() else task.result())

    def _thread_ended(self, call: Call, ended: Ended) -> None:
        self._threads.ended()
        self._returned(call, ended)

    def _returned(self, call: Call, ended: Ended) -> None:
        self._running.discard(call)
        self._holdings.budget.end(call.bytes)
        if self._solitude is not None and self._solitude[0] is call:
            self._solitude = None
        self._leave(call)
        if outcomes.is_reported(call, ended):
            self._report(call, ended)
        for attempt in call.attempts:
            if attempt.settlement is None and attempt.slot is not None:
                self._desk.settle(attempt, outcomes.settlement_of(attempt, call, ended, self._desk.options))
        self.admit()
        self._on_room()

    def _report(self, call: Call, ended: Ended) -> None:
        first = call.attempts[0].task
        self._emit(
            "task.failed",
            name=first.name,
            task_id=first.id,
            attempt=first.attempt,
            tasks=len(call.attempts),
            raised=ended.error,
        )

    def _tell_oversized(self, call: Call) -> None:
        """It was let in alone, lest it wait for ever; whoever set the ceiling did not have it in mind."""
        limit = self._holdings.budget.beyond(call.bytes)
        if limit is not None:
            first = call.attempts[0].task
            size = {"tasks": len(call.attempts), "bytes": call.bytes, "limit_bytes": limit}
            self._emit("task.oversized", name=first.name, task_id=first.id, **size)

    def _set_deadline(self, call: Call, now: float) -> None:
        max_run_s = self._desk.options.max_run_s
        if max_run_s is None:
            return
        call.deadline = now + max_run_s
        self._by_deadline.append(call)
        if self._deadline_timer is None:
            self._deadline_timer = self._loop.call_later(max_run_s, self._look_at_deadlines)

    def _look_at_deadlines(self) -> None:
        """All calls have the same time to run, so they stand in the order of their deadlines."""
        self._deadline_timer = None
        now = self._desk.clock()
        while self._by_deadline:
            call = self._by_deadline[0]
            if call.phase is Phase.RUNNING and call.deadline > now:
                self._deadline_timer = self._loop.call_later(call.deadline - now, self._look_at_deadlines)
                return
            self._by_deadline.popleft()
            if call.phase is Phase.RUNNING and call.cut is None:
                self._time_out(call)

    def _time_out(self, call: Call) -> None:
        """The contexts are flagged first. A thread cannot be cancelled: its slot stays taken until it returns."""
        late = [attempt for attempt in call.attempts if attempt.settlement is None and attempt.slot is not None]
        for attempt in late:
            attempt.flag_lost()
        call.cut_short(Cut.TIMEOUT)
        settlements: list[tuple[Attempt, Settlement]] = [
            (attempt, outcomes.timed_out(attempt, self._desk.options)) for attempt in late
        ]
        for attempt, settlement in settlements:
            self._desk.settle(attempt, settlement)
        first = call.attempts[0].task
        self._emit("task.timed_out", name=first.name, task_id=first.id, attempt=first.attempt, tasks=len(late))


def _arguments(handler: Handler, contexts: list[Any]) -> tuple[Any, ...]:
    if handler.batch is not None:
        return (list(contexts),)
    return (contexts[0], handler.payload(contexts[0].payload)) if handler.takes_payload else (contexts[0],)
