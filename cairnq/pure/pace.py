"""How many tasks a worker may hold ahead of their turn: some milliseconds of work, and none unless calls are short."""

from __future__ import annotations

AHEAD_S = 0.02
"""Seconds of work held ahead, at the rate at which calls have returned lately; and the longest call that is short."""

MOST_AHEAD_S = 0.05
"""The same where the database is slow."""

_REPLIES_AHEAD = 3.0
"""So many times what a claim's reply takes: what is left when more is asked for must last until it comes."""

MOST_AHEAD = 256
"""However fast the calls: beyond this a claim gains nothing by being larger."""

_LEAST_LEFT, _MOST_LEFT = 0.5, 0.75
"""Of what is held ahead, when more is asked for."""

_IDLE_SHARE, _EARLIER, _LATER = 0.01, 0.05, 0.01
"""After a window in which slots waited for more than so much of the time; steps there and back."""

_LEAST_WINDOW_S = 0.005
"""A rate is read over at least so long, or one burst of returns would pass for it."""

_WEIGHT = 0.1  # of the latest call, or reply, in the running mean


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
        self._reply_s = 0.0
        self._share_left = _LEAST_LEFT
        self._idle_share = 0.0
        self._idle_since = 0.0
        self._idle_s = 0.0

    def returned(self, took_s: float) -> None:
        """A call that ran for so long."""
        self._returned += 1
        if self._mean_s == float("inf"):
            self._mean_s = took_s
        else:
            self._mean_s += _WEIGHT * (took_s - self._mean_s)

    def idle(self, now: float, share: float) -> None:
        """From now on there is nothing to start for such a share of the slots (0 to 1)."""
        self._idle_s += self._idle_share * (now - self._idle_since)
        self._idle_share, self._idle_since = share, now

    def claimed(self, now: float, *, full: bool, took_s: float = 0.0) -> None:
        """A claim's reply came, after so long. `full`: it brought all that was asked for, so there is probably more.

        What slots have waited for it is no part of the rate: a rate that falls as less is held ahead would keep it low.
        """
        self._reply_s += _WEIGHT * (took_s - self._reply_s)
        self.idle(now, self._idle_share)
        busy_s = now - self._since - self._idle_s
        if not full or not self._has_backlog:
            self._has_backlog = full
            self._begin(now)
        elif self._returned and busy_s >= _LEAST_WINDOW_S:
            self._rate = self._returned / busy_s
            had_to_wait = self._idle_s > _IDLE_SHARE * (now - self._since)
            self._share_left += _EARLIER if had_to_wait else -_LATER
            self._share_left = min(_MOST_LEFT, max(_LEAST_LEFT, self._share_left))
            self._begin(now)

    def stalled(self) -> None:
        """What was held ahead did not get its turn: nothing that was learnt is true any more."""
        self._mean_s, self._rate, self._has_backlog = float("inf"), 0.0, False

    def ahead(self) -> int:
        """Tasks that may be held beyond those that run."""
        if not self._has_backlog or self._mean_s > AHEAD_S:
            return 0
        return min(MOST_AHEAD, int(self._rate * self._span_s()))

    def enough(self) -> int:
        """More is asked for when no more than this is left ahead: half of it, or more where slots had to wait lately.

        Asking earlier makes claims smaller; it is for nothing where it is the processor that makes replies slow.
        """
        return int(self.ahead() * self._share_left)

    def hold_s(self) -> float:
        """How long what has ended may wait for the next claim: while some is held ahead that comes within so long."""
        return self._span_s() / 2 if self.ahead() else 0.0

    def _span_s(self) -> float:
        """Seconds of work held ahead."""
        return min(MOST_AHEAD_S, max(AHEAD_S, _REPLIES_AHEAD * self._reply_s))

    def _begin(self, now: float) -> None:
        self._since, self._returned, self._idle_s = now, 0, 0.0
