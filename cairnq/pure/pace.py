"""How many tasks a worker may hold ahead of their turn: some milliseconds of work, and none unless calls are short."""

from __future__ import annotations

AHEAD_S = 0.02
"""Seconds of work held ahead, at the rate at which calls have returned lately; and the longest call that is short."""

MOST_AHEAD = 256
"""However fast the calls: beyond this a claim gains nothing by being larger."""

_LEAST_WINDOW_S = 0.005
"""A rate is read over at least so long, or one burst of returns would pass for it."""

_WEIGHT = 0.1  # of the latest call in the running mean


class Pace:
    """Learns from calls as they return, and from claims: where one comes back short, nothing waits to be taken ahead.

    Instants are seconds of the caller's clock.
    """

    def __init__(self) -> None:
        self._mean_s = float("inf")
        self._rate = 0.0
        self._returned = 0
        self._since = float("nan")
        self._has_backlog = False

    def returned(self, took_s: float) -> None:
        """A call that ran for so long."""
        self._returned += 1
        if self._mean_s == float("inf"):
            self._mean_s = took_s
        else:
            self._mean_s += _WEIGHT * (took_s - self._mean_s)

    def claimed(self, now: float, *, full: bool) -> None:
        """A claim's reply came. `full`: it brought all that was asked for, so there is probably more."""
        if not full or not self._has_backlog:
            self._has_backlog = full
            self._begin(now)
        elif self._returned and now - self._since >= _LEAST_WINDOW_S:
            self._rate = self._returned / (now - self._since)
            self._begin(now)

    def stalled(self) -> None:
        """What was held ahead did not get its turn: nothing that was learnt is true any more."""
        self._mean_s, self._rate, self._has_backlog = float("inf"), 0.0, False

    def ahead(self) -> int:
        """Tasks that may be held beyond those that run."""
        if not self._has_backlog or self._mean_s > AHEAD_S:
            return 0
        return min(MOST_AHEAD, int(self._rate * AHEAD_S))

    def hold_s(self) -> float:
        """How long what has ended may wait for the next claim: while some is held ahead that comes within so long."""
        return AHEAD_S / 2 if self.ahead() else 0.0

    def _begin(self, now: float) -> None:
        self._since, self._returned = now, 0
