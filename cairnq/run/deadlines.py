"""Ends calls that outrun `max_run`: one timer for all of them, set for the one that began first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cairnq.pure.clock import Clock
from cairnq.run.calls import Call


class Deadlines:
    """All calls have the same time to run, so they stand in the order of their deadlines."""

    def __init__(self, max_run_s: float | None, clock: Clock, on_late: Callable[[Call], None]) -> None:
        """`on_late(call)`: it still runs, and nothing has cut it short."""
        self._max_run_s = max_run_s
        self._clock = clock
        self._on_late = on_late
        self._loop = asyncio.get_running_loop()
        self._calls: dict[Call, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def set(self, call: Call, now: float) -> None:
        """It starts now."""
        if self._max_run_s is None:
            return
        self._calls[call] = now + self._max_run_s
        if self._timer is None:
            self._timer = self._loop.call_later(self._max_run_s, self._look)

    def clear(self, call: Call) -> None:
        """It has returned."""
        self._calls.pop(call, None)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        now = self._clock()
        for call, deadline in list(self._calls.items()):
            if deadline > now:
                self._timer = self._loop.call_later(deadline - now, self._look)
                return
            del self._calls[call]
            if call.cut is None:
                self._on_late(call)
