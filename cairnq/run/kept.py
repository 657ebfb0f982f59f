"""Whether somebody renews what a worker holds. While nobody does it claims nothing more.

Each lease that it took would run out, and cost its task an attempt. Whoever beats may be stopped, or hang.
"""

from __future__ import annotations

from collections.abc import Callable

from cairnq.pure.clock import Clock
from cairnq.run.attempt import Attempt
from cairnq.run.leases import LeaseTable
from cairnq.run.outage import Outage


class Kept:
    """Told of every loss. What ran out though the database was there shuts the gate; the next beat opens it again."""

    def __init__(self, table: LeaseTable, outage: Outage, clock: Clock, *, on_again: Callable[[], None]) -> None:
        """`on_again()` is called when somebody beats again."""
        self._table = table
        self._outage = outage
        self._clock = clock
        self._on_again = on_again
        self._opened_for = 0.0
        """The latest run-out that is over."""

    @property
    def is_kept(self) -> bool:
        return self._table.is_kept

    def losing(self, attempt: Attempt) -> None:
        """Before it is given up."""
        if attempt.slot is None or self._table.lost(attempt.slot) or self._outage.is_on:
            return
        now = self._clock()
        if not attempt.is_trusted(now):
            self._table.run_out(now)

    def look(self) -> None:
        ran_out_at = self._table.ran_out_at
        if ran_out_at != self._opened_for and self.is_kept:
            self._opened_for = ran_out_at
            self._on_again()
