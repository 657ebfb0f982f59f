"""Steps of the wall clock, told by its distance from a clock that never steps.

On SQLite leases end by this host's wall clock. Where it is set ahead, every lease seems to have run out.
"""

from __future__ import annotations


class ClockSteps:
    """`offset`: seconds from the steady clock's origin to the epoch. A step is a change of more than `margin` seconds.

    Between two looks the clock may drift or be slewed by less than that, so that small corrections never add up.
    """

    def __init__(self, offset: float, *, margin: float, quiet: float) -> None:
        """`quiet`: seconds after a step for which nothing may be recovered, one lease."""
        self._offset = offset
        self._margin = margin
        self._quiet = quiet
        self._stepped_at = float("-inf")
        self._owes_renewal = False

    def adapt(self, *, margin: float, quiet: float) -> None:
        """Other leases: what is known of the last step stays."""
        self._margin = margin
        self._quiet = quiet

    def look(self, offset: float, now: float) -> float:
        """Seconds by which the wall clock has stepped since the last look; 0.0 where it has not."""
        by, self._offset = offset - self._offset, offset
        if abs(by) <= self._margin:
            return 0.0
        self._stepped_at, self._owes_renewal = now, True
        return by

    def may_recover(self, now: float) -> bool:
        return now - self._stepped_at >= self._quiet

    def take_renewal(self) -> bool:
        """Whether what is held must be renewed whatever its lease says; True once for each step."""
        owed, self._owes_renewal = self._owes_renewal, False
        return owed

    def owe_renewal(self) -> None:
        """The one that was taken has failed."""
        self._owes_renewal = True
