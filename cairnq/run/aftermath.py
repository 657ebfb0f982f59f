"""Calls that have returned and whose outcome is not chosen yet: they wait behind those that start in their place."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from cairnq.run.calls import Call, Ended

MOST = 256
"""So many are resolved at once, whatever is about to start."""


class Aftermath:
    """Of fifty calls that wake together, the last would else wait for all that is to be done for the others."""

    def __init__(self, resolve: Callable[[Call, Ended], None], on_resolved: Callable[[], None]) -> None:
        """`resolve(call, ended)` is called for each, in the order of their return, then once `on_resolved()`."""
        self._resolve = resolve
        self._on_resolved = on_resolved
        self._waiting: deque[tuple[Call, Ended]] = deque()
        self._loop = asyncio.get_running_loop()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def join(self, call: Call, ended: Ended, *, may_wait: bool) -> None:
        """It is resolved at once, with those before it, or waits for two turns of the loop.

        Until then whatever was started in this turn has taken its first step.
        """
        self._waiting.append((call, ended))
        if not may_wait or len(self._waiting) == MOST:
            self.resolve()
        elif len(self._waiting) == 1:
            self._loop.call_soon(self._loop.call_soon, self.resolve)

    def resolve(self) -> None:
        """All of them, now."""
        if not self._waiting:
            return
        try:
            while self._waiting:
                self._resolve(*self._waiting.popleft())
        finally:
            if self._waiting:  # behind one that raised
                self._loop.call_soon(self.resolve)
        self._on_resolved()
