"""Grows and shrinks the queues whose `processes` is a range: by the keeper's samples up, by idleness down."""

from __future__ import annotations

from cairnq_supervisor.loop.house import House
from cairnq_supervisor.loop.roster import Roster
from cairnq_supervisor.pure.lifecycle import SeatState
from cairnq_supervisor.pure.settings import QueueSettings
from cairnq_supervisor.pure.sizing import Load, Sizing

LOOK_INTERVAL = 15.0
"""Seconds between two looks for idleness; they happen only while there is more than the least."""


class Sizer:
    """Made anew with each generation, which ends what an operator scaled by hand."""

    def __init__(self, house: House, roster: Roster) -> None:
        self._house = house
        self._roster = roster
        self._sizings = {
            queue.name: Sizing(queue.processes, queue.max_processes)
            for queue in roster.queues
            if queue.max_processes is not None
        }
        self._due: dict[str, int] = {}
        self._looking: set[str] = set()

    def retire(self) -> None:
        """Another one decides from now on, whatever this one still wanted to look at."""
        self._sizings.clear()

    def leave_alone(self, queue: str) -> None:
        """An operator has decided."""
        self._sizings.pop(queue, None)

    def sampled(self, due: dict[str, int]) -> None:
        """Tasks that wait, by queue."""
        self._due = due
        for queue in self._roster.queues:
            sizing = self._sizings.get(queue.name)
            if sizing is not None:
                self._settle_on(queue, sizing.after_sample(self._load(queue)))

    def _look(self, queue: QueueSettings) -> None:
        self._looking.discard(queue.name)
        sizing = self._sizings.get(queue.name)
        if sizing is None:
            return
        self._sizings[queue.name], processes = sizing.after_look(self._load(queue))
        self._settle_on(queue, processes)

    def _settle_on(self, queue: QueueSettings, processes: int) -> None:
        if processes != self._roster.wanted(queue.name) and not self._roster.is_paused(queue.name):
            self._roster.scale(queue, processes)
            self._house.emit("queue.scaled", queue=queue.name, processes=processes)
        sizing = self._sizings[queue.name]
        if self._roster.wanted(queue.name) > sizing.low and queue.name not in self._looking:
            self._looking.add(queue.name)
            self._house.reactor.call_after(LOOK_INTERVAL, lambda: self._look(queue))

    def _load(self, queue: QueueSettings) -> Load:
        seats = [seat for seat in self._roster.of(queue.name) if seat.wanted]
        return Load(
            processes=self._roster.wanted(queue.name),
            ready=sum(seat.state is SeatState.READY for seat in seats),
            room=sum(seat.room for seat in seats),
            due=self._due.get(queue.name, 0),
            concurrency=queue.concurrency,
        )
