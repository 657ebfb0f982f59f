"""Calls that are held and have not started: in which order they start, what holds one up, and which go back unspent."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection

from cairnq.pure.clock import Clock
from cairnq.pure.pace import Pace
from cairnq.pure.quota import PayloadBudget
from cairnq.run.attempt import Attempt
from cairnq.run.calls import Call, Phase

PATIENCE_S = 0.1
"""Seconds after which a call that was claimed ahead of its turn should have had it: others may run it sooner."""


class Line:
    """First come, first served: a large payload is not overtaken for ever by small ones."""

    def __init__(
        self,
        concurrency: int,
        budget: PayloadBudget,
        pace: Pace,
        clock: Clock,
        *,
        running: Collection[Call],
        start: Callable[[Call, float], None],
        lose: Callable[[Attempt, str], None],
        give_back: Callable[[Call], None],
        is_claiming: Callable[[], bool],
    ) -> None:
        """`running` is looked at, never changed; `give_back(call)` releases one that did not get its turn.

        While `is_claiming()` nothing is given back for being late: that claim could take it again before the outcome
        of the release is known.
        """
        self._concurrency = concurrency
        self._budget = budget
        self._pace = pace
        self._clock = clock
        self._running = running
        self._start = start
        self._lose = lose
        self._give_back = give_back
        self._is_claiming = is_claiming
        self._calls: deque[Call] = deque()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._was_late = False
        self._idle = 0
        self._told_by = max(1, concurrency // 16)

    def __bool__(self) -> bool:
        return bool(self._calls)

    @property
    def is_held_up(self) -> bool:
        """Something waits although there is a slot for it: for room in the byte budget."""
        return bool(self._calls) and len(self._running) < self._concurrency

    def join(self, call: Call) -> None:
        self._calls.append(call)

    def leave(self, call: Call) -> None:
        """It was lost while it waited."""
        self._calls.remove(call)

    def clear(self) -> None:
        """Everything goes back."""
        while self._calls:
            self._give_back(self._calls.popleft())

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def admit(self) -> bool:
        """Start what may start. Returns whether anything did."""
        now, before = self._clock(), len(self._running)
        while self._calls and len(self._running) < self._concurrency:
            call = self._calls[0]
            if not self._budget.admits(call.bytes):
                break
            for attempt in call.attempts:
                if not attempt.is_trusted(now):
                    self._lose(attempt, "its trust window ended before it could start")
            if call.phase is Phase.WAITING:
                self._calls.popleft()
                self._start(call, now)
        if self._calls and self._timer is None:
            self._timer = self._loop.call_later(PATIENCE_S, self._look)
        if self._idle or not self._calls:
            self._tell_idle(now)
        return len(self._running) > before

    def _tell_idle(self, now: float) -> None:
        """How many slots have nothing to start; of many not each, for a burst of calls would tell of every one."""
        idle = 0 if self._calls else self._concurrency - len(self._running)
        if abs(idle - self._idle) >= self._told_by or (self._idle and not idle):
            self._idle = idle
            self._pace.idle(now, idle / self._concurrency)

    def _look(self) -> None:
        """Twice late in a row, so that a loop that merely stood still for a moment gives nothing back."""
        self._timer = None
        now = self._clock()
        ahead = [call for call in self._calls if call.is_ahead]
        is_late = bool(ahead) and now - ahead[0].waiting_since >= PATIENCE_S
        if is_late and self._was_late and not self._is_claiming():
            self._pace.stalled()
            self._calls = deque(call for call in self._calls if not call.is_ahead)
            for call in ahead:
                self._give_back(call)
        self._was_late = is_late and (not self._was_late or self._is_claiming())
        if ahead:
            self._timer = self._loop.call_later(PATIENCE_S, self._look)
