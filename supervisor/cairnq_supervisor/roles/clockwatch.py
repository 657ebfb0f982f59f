"""The keeper's eye on the wall clock, by which leases end on SQLite: after a step it recovers nothing for one lease."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cairnq.pure.clock import boottime
from cairnq.run.trust import margin
from cairnq_supervisor.pure.steps import ClockSteps
from cairnq_supervisor.roles.link import Link
from cairnq_supervisor.system.wall import wall_offset

LOOK_INTERVAL = 0.25
"""Seconds for which, after a step, an outcome may meet a lease that seems to have run out."""


class ClockWatch:
    """`on_step()` is called once for each step, to have what is held renewed at once."""

    def __init__(self, link: Link, *, lease: float, on_step: Callable[[], None]) -> None:
        self._link = link
        self._lease = lease
        self._on_step = on_step
        self._steps = ClockSteps(wall_offset(), margin=margin(lease), quiet=lease)
        self.take_renewal = self._steps.take_renewal
        self.owe_renewal = self._steps.owe_renewal

    def adapt(self, lease: float) -> None:
        """A reload has changed it."""
        self._lease = lease
        self._steps.adapt(margin=margin(lease), quiet=lease)

    def look(self) -> None:
        by = self._steps.look(wall_offset(), boottime())
        if by:
            self._link.emit("clock.stepped", by_s=round(by, 3), quiet_s=self._lease)
            self._on_step()

    def may_recover(self) -> bool:
        self.look()
        return self._steps.may_recover(boottime())

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(LOOK_INTERVAL)
            self.look()
