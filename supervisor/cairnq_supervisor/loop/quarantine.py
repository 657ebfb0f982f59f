"""Processes for suspects: while some wait, workers beside the usual ones, each of which runs one at a time, alone.

The usual workers go on as they are: none has to empty itself, and no suspect waits for a call that takes an hour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cairnq_supervisor.loop.house import House
from cairnq_supervisor.loop.roster import Roster
from cairnq_supervisor.loop.worker_seat import WorkerSeat
from cairnq_supervisor.pure.lifecycle import SeatState
from cairnq_supervisor.pure.settings import QueueSettings

_AT_WORK = frozenset({SeatState.READY, SeatState.QUIESCING})


class Quarantine:
    """Made anew with each generation."""

    def __init__(self, house: House, roster: Roster) -> None:
        self._house = house
        self._roster = roster

    def sampled(self, suspects: Mapping[str, int]) -> None:
        """Suspects that are queued, by queue, as the keeper has just counted them."""
        for queue in self._roster.queues:
            self._settle_on(queue, suspects.get(queue.name, 0))

    def _settle_on(self, queue: QueueSettings, waiting: int) -> None:
        """As many as have something to do. While one is idle no more are: what waits is in backoff, or foreign.

        One that boots could not begin yet: it is waited for, and not idle.
        """
        seats = list(self._roster.quarantine(queue.name))
        free = [seat for seat in seats if not _is_busy(seat)]
        idle = [seat for seat in free if seat.state in _AT_WORK]
        for seat in idle[1:] if waiting else free:
            self._roster.dismiss(seat)
        more = 0 if any(seat.live for seat in free) else min(waiting, self._most(queue.name) - len(seats))
        if more > 0:
            self._house.emit("queue.quarantined", queue=queue.name, suspects=waiting, processes=len(seats) + more)
            self._hire(queue, more, taken={seat.number for seat in seats})

    def _hire(self, queue: QueueSettings, more: int, *, taken: set[int]) -> None:
        apart = replace(queue, concurrency=1, quarantine=True)
        numbers = (number for number in range(len(taken) + more) if number not in taken)
        for _ in range(more):
            self._roster.hire(apart, next(numbers))

    def _most(self, queue: str) -> int:
        """As many as it has usual ones; none once those are told to leave, or to claim nothing."""
        at_work = any(seat.wanted for seat in self._roster.of(queue))
        return self._roster.wanted(queue) if at_work and not self._roster.is_paused(queue) else 0


def _is_busy(seat: WorkerSeat) -> bool:
    return seat.incarnation is not None and not seat.incarnation.holds_nothing
