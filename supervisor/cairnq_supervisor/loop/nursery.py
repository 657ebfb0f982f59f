"""Fills seats one in a turn and a few at a time, so that a large fleet neither storms its host nor makes it deaf."""

from __future__ import annotations

from collections import Counter, deque
from typing import Protocol

from cairnq.pure.clock import Clock
from cairnq_supervisor.loop.reactor import Reactor, Timer
from cairnq_supervisor.pure.lifecycle import SeatState

PATIENCE = 5.0
"""Seconds after which a worker that still boots holds up nobody behind it: one that hangs must not stop the others."""


class Due(Protocol):
    """A seat that may wait for its turn, in one line with those of its queue."""

    @property
    def line(self) -> str: ...
    @property
    def is_due(self) -> bool: ...
    @property
    def state(self) -> SeatState: ...
    def fill(self) -> None: ...


class Nursery:
    """At most `most` workers boot beside each other. Call `go_on` after every change of a seat.

    Lines take turns, and one that has nobody booting need not wait for those that have: one worker of such a line boots
    beyond `most`. So a queue whose boots hang, or end in a crash, does not starve another.
    """

    def __init__(self, reactor: Reactor, clock: Clock, *, most: int) -> None:
        self._reactor = reactor
        self._clock = clock
        self._most = most
        self._lines: dict[str, deque[Due]] = {}
        """The one whose turn it is stands first."""

        self._booting: dict[Due, float] = {}
        self._timer: Timer | None = None

    def line_up(self, seat: Due) -> None:
        """This seat is due. It is filled when its turn comes, unless it is no longer due then."""
        self._lines.setdefault(seat.line, deque()).append(seat)
        self.go_on()

    def go_on(self) -> None:
        """In the next turn, which hears signals first."""
        if self._lines:
            self._look_at(self._clock())

    def _look(self) -> None:
        self._timer = None
        now = self._clock()
        self._booting = {
            seat: since
            for seat, since in self._booting.items()
            if seat.state is SeatState.STARTING and now - since < PATIENCE
        }
        self._let_go()
        if not self._lines:
            return
        booting = Counter(seat.line for seat in self._booting)
        free = (name for name in self._lines if len(self._booting) < self._most + (booting[name] == 0))
        name = next(free, None)
        if name is None:
            self._look_at(min(self._booting.values()) + PATIENCE)
            return
        line = self._lines.pop(name)
        seat = line.popleft()
        if line:
            self._lines[name] = line
        self._booting[seat] = now
        seat.fill()
        self.go_on()

    def _let_go(self) -> None:
        """Of seats that are not due any more, and of lines in which nobody stands."""
        for name, line in list(self._lines.items()):
            while line and not line[0].is_due:
                line.popleft()
            if not line:
                del self._lines[name]

    def _look_at(self, at: float) -> None:
        if self._timer is not None:
            if self._timer.at <= at:
                return
            self._timer.cancel()
        self._timer = self._reactor.call_at(at, self._look)
