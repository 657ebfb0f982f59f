"""Where a claim may begin to look: where the full claim before it ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cairnq.pure.models import ClaimedTask

FULL_LOOK_S = 0.1
"""At least so often the queue is looked at from its beginning, for what came back to a place further ahead."""

LEAST = 32
"""Tasks of a claim. Smaller ones leave few entries behind that the next would have to get past."""


class Place(NamedTuple):
    """In the order of the claim."""

    priority: int
    run_at_ms: int
    id: str


class Onward:
    """Each task that was claimed leaves an entry in the index until it is vacuumed, which the next claim steps over.

    Where claims for different things take turns, each begins at the beginning. Instants are seconds of the caller's
    clock.
    """

    def __init__(self) -> None:
        self._place: Place | None = None
        self._asked: object = None
        self._looked_at = float("-inf")

    def begin(self, asked: object, now: float) -> Place | None:
        """For a claim that asks for the same (queue and names) as the one before; None: the beginning."""
        if self._place is not None and asked == self._asked and now - self._looked_at < FULL_LOOK_S:
            return self._place
        self._asked, self._looked_at = asked, now
        return None

    def claimed(self, asked: object, found: Sequence[ClaimedTask], limit: int) -> None:
        """What it brought, in the order of the claim. Where it came back short, nothing is known."""
        if asked != self._asked:  # another claim has begun meanwhile
            return
        if len(found) < max(limit, LEAST):
            self._place = None
            return
        last = found[-1].task
        self._place = Place(last.priority, last.run_at_ms, last.id)
