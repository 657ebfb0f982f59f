"""Two alarms of an engine: the end of the trust in a lease, and the proof that its loop turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cairnq.pure.clock import Clock
from cairnq.run.attempt import Attempt
from cairnq.run.holdings import Holdings
from cairnq.run.leases import LeaseTable


class TrustWatch:
    """Finds attempts whose lease was lost, or whose trust window ended without anybody saying so.

    An alarm only: whoever writes compares the clock with the table once more. Attempts with a chosen outcome are
    the settler's.
    """

    def __init__(
        self,
        holdings: Holdings,
        lease_s: float,
        clock: Clock,
        lose: Callable[[Attempt, str], None],
        *,
        on_looked: Callable[[], None],
    ) -> None:
        self._holdings = holdings
        self._clock = clock
        self._lose = lose
        self._on_looked = on_looked
        # What is newly held is trusted for at least this long: it need not wake the alarm.
        self._longest_nap_s = lease_s / 3

    async def run(self) -> None:
        while True:
            left = self._holdings.trust_ends() - self._clock()
            await asyncio.sleep(min(max(left, 0.0), self._longest_nap_s))
            self.look()

    def look(self) -> None:
        now = self._clock()
        for attempt in self._holdings:
            if attempt.settlement is not None or attempt.slot is None:
                continue
            if attempt.table.lost(attempt.slot):
                self._lose(attempt, "the database gave it to somebody else, or it expired there")
            elif not attempt.is_trusted(now):
                self._lose(attempt, "its trust window ended without a renewal")
        self._on_looked()


class Pulse:
    """Writes when the loop last turned, and how late, for whoever watches the table."""

    def __init__(self, table: LeaseTable, clock: Clock, *, interval_s: float) -> None:
        self._table = table
        self._clock = clock
        self._interval_s = interval_s

    async def run(self) -> None:
        self._table.last_progress = self._clock()
        try:
            while True:
                await asyncio.sleep(self._interval_s)
                now = self._clock()
                self._table.loop_lag = max(0.0, now - self._table.last_progress - self._interval_s)
                self._table.last_progress = now
        finally:
            self._table.last_progress = 0.0  # nothing turns any more, and nothing is blocked
