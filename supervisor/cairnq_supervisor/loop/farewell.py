"""When a drain may end: no worker is left, and what the killed ones held is settled, or had its time."""

from __future__ import annotations

from cairnq_supervisor.loop.fleet import LAST_SWEEP, Fleet
from cairnq_supervisor.loop.house import House

_PATIENCE = 3.0
"""Seconds for the tables of dead workers to be settled, once no worker is left."""


class Farewell:
    """Ask `is_over` after every change, and at `next_look`."""

    def __init__(self, house: House, fleet: Fleet) -> None:
        self._house = house
        self._fleet = fleet
        self._gone_since: float | None = None
        self.incomplete = False
        """The database did not take everything back."""

    def is_over(self, now: float) -> bool:
        if not self._fleet.workers_gone:
            return False
        if self._gone_since is None:
            self._gone_since = now
        owed = self._fleet.open_duties(now)
        if owed and now - self._gone_since >= _PATIENCE:
            unsettled = [dict(duty.identity) for duty in owed if not duty.settled]
            if unsettled:
                self.incomplete = True
                self._house.emit("drain.incomplete", unsettled=unsettled)
            return True
        return not owed

    def next_look(self, now: float) -> float | None:
        """When to ask again at the latest; None while something else will have it asked."""
        if self._gone_since is None:
            return None
        owed = self._fleet.open_duties(now)
        return min([duty.message.since + LAST_SWEEP for duty in owed if duty.settled], default=now + LAST_SWEEP)
