"""One selector and one heap of deadlines. It wakes for descriptors and deadlines only: there is no tick."""

from __future__ import annotations

import heapq
import itertools
import selectors
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Protocol

from cairnq.pure.clock import Clock

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE

_FEW = 64
"""Deadlines that are kept, cancelled or not, without a look at which are which."""

_MOST_FAULTS = 10
"""In a row, of one descriptor's callback."""

OnFault = Callable[[BaseException], None]


class HasFileno(Protocol):
    def fileno(self) -> int: ...


class Timer:
    """A deadline that has not come yet."""

    __slots__ = ("action", "at")

    def __init__(self, at: float, action: Callable[[], None] | None) -> None:
        self.at = at
        self.action = action

    def cancel(self) -> None:
        self.action = None


class Reactor:
    """Runs callbacks, one at a time, until `stop`. One that raises is reported to `on_fault`, and the loop goes on."""

    def __init__(self, clock: Clock, on_fault: OnFault) -> None:
        self._clock = clock
        self._on_fault = on_fault
        self._selector = selectors.DefaultSelector()
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._sweep_at = _FEW
        self._stopped = False
        self._faults: Counter[int] = Counter()

    def fileno(self) -> int:
        """The selector's own descriptor."""
        return self._selector.fileno()

    def watch(self, fd: int | HasFileno, callback: Callable[[int], None], events: int = READ) -> None:
        """`callback(events)` whenever `fd` is ready. Watching it again replaces both."""
        try:
            self._selector.modify(fd, events, callback)
        except KeyError:
            self._selector.register(fd, events, callback)

    def forget(self, fd: int | HasFileno) -> None:
        """Call it before the descriptor is closed."""
        self._faults.pop(fd if isinstance(fd, int) else fd.fileno(), None)
        try:
            self._selector.unregister(fd)
        except KeyError:
            return

    def call_at(self, at: float, action: Callable[[], None]) -> Timer:
        """`action()` once `at` (on this reactor's clock) has come."""
        timer = Timer(at, action)
        if len(self._heap) >= self._sweep_at:
            self._sweep()
        heapq.heappush(self._heap, (at, next(self._order), timer))
        return timer

    def call_after(self, seconds: float, action: Callable[[], None]) -> Timer:
        return self.call_at(self._clock() + seconds, action)

    def stop(self) -> None:
        self._stopped = True

    def run(self) -> None:
        while not self._stopped:
            self.turn()

    def turn(self) -> None:
        """Wait for the next descriptor or deadline, and act on all that are due."""
        ready = self._selector.select(self._patience())
        for key, events in ready:
            # A callback before this one may have let go of the descriptor.
            if self._selector.get_map().get(key.fd) is key:
                self._serve(key.fd, partial(key.data, events))
        now = self._clock()
        while self._heap and self._heap[0][0] <= now:
            action = heapq.heappop(self._heap)[2].action
            if action is not None:
                self._dispatch(action)

    def close(self) -> None:
        self._selector.close()

    def _patience(self) -> float | None:
        """Seconds until the next deadline; None: for ever."""
        while self._heap and self._heap[0][2].action is None:
            heapq.heappop(self._heap)
        return max(0.0, self._heap[0][0] - self._clock()) if self._heap else None

    def _sweep(self) -> None:
        """A cancelled deadline that is far off would stay for as long: a day, where a worker's age is one."""
        self._heap = [entry for entry in self._heap if entry[2].action is not None]
        heapq.heapify(self._heap)
        self._sweep_at = max(_FEW, 2 * len(self._heap))

    def _serve(self, fd: int, action: Callable[[], None]) -> None:
        """A descriptor whose callback fails again and again would keep the loop from sleeping: it is let go."""
        if self._dispatch(action):
            self._faults.pop(fd, None)
            return
        self._faults[fd] += 1
        if self._faults[fd] >= _MOST_FAULTS:
            self.forget(fd)
            self._on_fault(RuntimeError(f"descriptor {fd} is not listened to any more"))

    def _dispatch(self, action: Callable[[], None]) -> bool:
        """Whether it went well."""
        try:
            action()
        except Exception as error:  # noqa: BLE001 - the border of the loop: one callback does not end the others
            self._on_fault(error)
            return False
        return True
