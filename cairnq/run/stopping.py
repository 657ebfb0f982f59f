"""What signals mean to a standalone worker. Decides only; whoever installs the handlers passes the instants in."""

from __future__ import annotations

import signal
from collections.abc import Callable

REPEAT_S = 1.0
"""Signals that follow one another within this are one: a process group is often signalled twice."""


class StopSignals:
    """The first signal stops the worker; a SIGINT that comes later, by itself, means no more waiting."""

    def __init__(self, *, stop: Callable[[], None], hurry: Callable[[], None]) -> None:
        self._stop = stop
        self._hurry = hurry
        self._last = float("-inf")
        self._stopped = False

    def got(self, number: signal.Signals, now: float) -> None:
        if now - self._last < REPEAT_S:
            return
        self._last = now
        if not self._stopped:
            self._stopped = True
            self._stop()
        elif number is signal.SIGINT:
            self._hurry()
