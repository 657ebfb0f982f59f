"""When a claim loop looks for work: after a wake (three times), again where it found some, else at each poll."""

from __future__ import annotations

import random

AFTER_WAKE_S = (0.0, 0.025, 0.1)
"""A wake may come before the row it announces is visible, or be one that another worker answered."""
POLL_JITTER = 0.1
"""Share of the interval by which polls are spread, so that workers that started together part."""


class Looks:
    """Instants are seconds of the caller's clock."""

    def __init__(self, poll_interval_s: float) -> None:
        self.polling = True
        """False: somebody else proves that there is nothing to look for."""
        self._poll_interval_s = poll_interval_s
        self._after_wake: list[float] = []
        self._again = False
        self._next_poll = float("-inf")
        self._not_before = float("-inf")

    def wake(self, now: float) -> None:
        """There may be work. A wake lasts until its looks were taken, however long the gate is closed."""
        self._after_wake = [now + delay for delay in AFTER_WAKE_S]

    def again(self) -> None:
        """The last look found something, or left something behind."""
        self._again = True

    def hold_off(self, until: float) -> None:
        """No look before `until`: the database is away."""
        self._not_before = until

    def take(self, now: float) -> None:
        """A look begins: it answers every reason that has come up by now."""
        self._again = False
        self._after_wake = [instant for instant in self._after_wake if instant > now]
        self._next_poll = now + self._poll_interval_s * random.uniform(1.0, 1.0 + POLL_JITTER)  # noqa: S311 - jitter

    def next_look(self) -> float:
        """The instant of the next look; minus infinity: at once; infinity: none is planned."""
        planned = float("-inf") if self._again else float("inf")
        if self._after_wake:
            planned = min(planned, self._after_wake[0])
        if self.polling:
            planned = min(planned, self._next_poll)
        return max(planned, self._not_before)
