"""Runs handlers: an attempt is started, performed, resolved to an outcome, and handed to the settler."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Iterable

from cairnq.pure import envelope as envelopes
from cairnq.pure.models import Settlement
from cairnq.pure.pace import Pace
from cairnq.pure.quota import Usage
from cairnq.run import outcomes
from cairnq.run.aftermath import Aftermath
from cairnq.run.attempt import Attempt
from cairnq.run.calls import Call, Cut, Ended, Phase, arguments
from cairnq.run.context import Desk, TaskContext
from cairnq.run.current import mark_log_records, performing
from cairnq.run.deadlines import Deadlines
from cairnq.run.emit import Emit
from cairnq.run.holdings import Holdings
from cairnq.run.line import Line
from cairnq.run.registry import Handler, Registry
from cairnq.run.thread_calls import ThreadCalls


class Executor:
    """Calls count against `usage` from the moment their rows are held until their handler has really returned."""

    def __init__(
        self,
        registry: Registry,
        holdings: Holdings,
        usage: Usage,
        desk: Desk,
        *,
        pace: Pace,
        emit: Emit,
        on_room: Callable[[], None],
        is_claiming: Callable[[], bool],
    ) -> None:
        """`pace` is told how long calls take; `on_room()` is called when one returned. `is_claiming`: see `Line`."""
        self._registry = registry
        self._holdings = holdings
        self._usage = usage
        self._desk = desk
        self._pace = pace
        self._emit = emit
        self._concurrency = desk.options.concurrency
        self._running: set[Call] = set()
        self._shown = 0
        self._shut: set[str] = set()
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._line = Line(
            self._concurrency,
            holdings.budget,
            pace,
            desk.clock,
            running=self._running,
            start=self._start,
            lose=desk.lose,
            give_back=self._give_back,
            is_claiming=is_claiming,
        )
        self._aftermath = Aftermath(self._resolve, on_room)
        self._deadlines = Deadlines(desk.options.max_run_s, desk.clock, self._time_out)
        mark_log_records()
        self._on_threads = ThreadCalls(
            self._concurrency, self._context, begin=self._begin_on_thread, returned=self._returned, emit=emit
        )

    @property
    def is_idle(self) -> bool:
        return not self._running and not self._aftermath and not self._line

    @property
    def has_cancellable(self) -> bool:
        """Some call that runs is a coroutine, or what one came to is not known yet."""
        return bool(self._aftermath) or any(call.task is not None for call in self._running)

    @property
    def is_held_up(self) -> bool:
        """Held calls wait although there is a slot for them: nothing more should be claimed."""
        return self._line.is_held_up

    @property
    def running(self) -> Iterable[Call]:
        return tuple(self._running)

    def accept(self, attempts: Iterable[Attempt]) -> None:
        """Take over held attempts, in the order of the claim; those that may start do so now."""
        usage, join, now = self._usage, self._line.join, self._desk.clock()
        for handler, group in self._grouped(attempts):
            usage.take(handler.name, handler.resource)
            self._show_shut(handler)
            join(Call(handler, group, now, is_ahead=usage.calls > self._concurrency))
        self.admit()
        self._show_calls()

    def admit(self) -> None:
        """Start what may start now."""
        self._line.admit()

    def release_waiting(self) -> None:
        """Give back what never started."""
        self._line.clear()
        for call in self._on_threads.waiting:
            call.cut_short(Cut.DRAIN)
            self._on_threads.start(call)

    def lose(self, attempt: Attempt, why: str) -> None:
        """The lease is gone: flag the context first, then cancel the handler, and settle nothing."""
        if attempt.slot is None:
            return
        call, task = attempt.call, attempt.task
        attempt.flag_lost()
        attempt.close(None)
        self._emit("lease.lost", task_id=task.id, name=task.name, attempt=task.attempt, reason=why)
        if call is None or any(other.slot is not None for other in call.attempts):
            return
        if call.phase is Phase.WAITING:
            self._line.leave(call)
            self._leave(call)
        else:
            call.cut_short(Cut.LOST)

    def cut_short(self) -> None:
        """The worker's time is up: cancel every handler that can be cancelled."""
        for call in self.running:
            call.cut_short(Cut.DRAIN)

    def abandon(self) -> list[Attempt]:
        """Give up on the calls that do not return; their contexts write nothing any more."""
        self._aftermath.resolve()
        left = [attempt for call in self._running for attempt in call.attempts if attempt.slot is not None]
        for call in self._running:
            call.seal()
        for attempt in left:
            attempt.flag_lost()
        return left

    def close(self) -> None:
        self._line.close()
        self._deadlines.close()
        self._on_threads.close()

    def _grouped(self, attempts: Iterable[Attempt]) -> list[tuple[Handler, list[Attempt]]]:
        """A group for each call, in the order of the claim; a batch stands where the first of its tasks does."""
        groups: list[tuple[Handler, list[Attempt]]] = []
        filling: dict[str, list[Attempt]] = {}
        for attempt in attempts:
            name = attempt.task.name
            handler = self._registry.handlers.get(name)
            if handler is None:
                outcome = outcomes.failed(attempt, envelopes.no_handler(name), self._desk.options)
                self._desk.settle(attempt, outcome)
            elif handler.batch is None:
                groups.append((handler, [attempt]))
            elif len(group := filling.get(name, [])) in (0, handler.batch):
                filling[name] = [attempt]
                groups.append((handler, filling[name]))
            else:
                group.append(attempt)
        return groups

    def _leave(self, call: Call) -> None:
        call.phase = Phase.RETURNED
        call.contexts = []
        self._usage.give(call.handler.name, call.handler.resource)
        self._show_shut(call.handler)
        self._show_calls()

    def _give_back(self, call: Call) -> None:
        self._leave(call)
        for attempt in call.attempts:
            self._desk.settle(attempt, outcomes.released(attempt, started=False))

    def _show_calls(self) -> None:
        """What is held ahead of its turn is not in flight yet."""
        shown = min(self._usage.calls, self._concurrency)
        if shown != self._shown:
            self._holdings.table.in_flight_calls = self._shown = shown

    def _show_shut(self, handler: Handler) -> None:
        if handler.concurrency is not None:
            is_shut = self._usage.by_name[handler.name] >= handler.concurrency
            (self._shut.add if is_shut else self._shut.discard)(handler.name)
            self._holdings.table.shut = len(self._shut)

    def _start(self, call: Call, now: float) -> None:
        call.phase = Phase.RUNNING
        call.drop_lost()
        call.contexts = [TaskContext(attempt, self._desk) for attempt in call.attempts]
        self._running.add(call)
        self._holdings.budget.start(call.bytes)
        self._tell_oversized(call)
        if call.handler.is_async:
            self._deadlines.set(call, now)
            # Each call in a context of its own: the one from which it happens to be started is often another call's.
            call.task = self._context.copy().run(self._loop.create_task, self._perform(call))
        else:
            self._on_threads.start(call)

    def _begin_on_thread(self, call: Call) -> None:
        now = self._desk.clock()
        self._deadlines.set(call, now)
        call.begin(now)

    async def _perform(self, call: Call) -> None:
        try:
            # Not before this very moment: should a neighbour kill the process until then, the attempt is not spent.
            call.begin(self._desk.clock())
            with performing(call.attempts[0].task):
                value = await call.handler.fn(*arguments(call.handler, call.contexts))
        except BaseException as error:  # the border to the handler: whatever it raises is an outcome
            if isinstance(error, GeneratorExit) and not self._loop.is_running():
                raise  # nobody raised it: the loop is over, and what it left is put away
            # In no variable of this frame, which the traceback keeps: the two would be garbage in a circle.
            self._context.run(self._returned, call, Ended(error=error))
        else:
            self._context.run(self._returned, call, Ended(value=value))

    def _returned(self, call: Call, ended: Ended) -> None:
        """Its slot is free, and the next call starts first, where one waits."""
        now = self._desk.clock()
        self._running.discard(call)
        self._holdings.budget.end(call.bytes)
        self._deadlines.clear(call)
        if call.began_at is not None:
            self._pace.returned(now - call.began_at)
        call.phase = Phase.RETURNED
        call.seal()
        for attempt in call.attempts:
            attempt.end(now)
        self._aftermath.join(call, ended, may_wait=self._line.admit())

    def _resolve(self, call: Call, ended: Ended) -> None:
        self._leave(call)
        if outcomes.is_reported(call, ended):
            self._report(call, ended)
        for attempt in call.attempts:
            if attempt.slot is None:
                continue
            settlement = outcomes.settlement_of(attempt, call, ended, self._desk.options)
            if attempt.settlement is None:
                self._desk.settle(attempt, settlement)
            else:
                attempt.otherwise = settlement

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
