"""The workers' bells in the keeper's hands: it wakes them itself, and the supervisor is not on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cairnq.pure.clock import Clock, boottime
from cairnq.run.leases import LeaseTable
from cairnq_supervisor.pure import waking
from cairnq_supervisor.roles.beating import Lent
from cairnq_supervisor.system.bell import Bell

SILENCE = 12.0
"""Seconds without a word of the supervisor, which asks every 5 s, after which nobody is woken: what a worker claimed
then nobody would beat, and each lease that runs out so costs its task an attempt."""


@dataclass(frozen=True, slots=True)
class _Hung:
    queue: str
    bell: Bell
    table: LeaseTable


class Bells:
    """`tables`: what the workers hold, and their gauges, by `worker_id`. A bell is hung after its worker's table is."""

    def __init__(self, tables: Mapping[str, Lent], clock: Clock = boottime) -> None:
        self._tables = tables
        self._clock = clock
        self._spoken_at = clock()
        self._hung: dict[str, _Hung] = {}

    def supervisor_spoke(self) -> None:
        self._spoken_at = self._clock()

    def hang(self, worker_id: str, queue: str, fd: int) -> None:
        """It is rung for this queue from now on; not if its worker's table did not arrive for want of a descriptor."""
        self.take_down(worker_id)
        bell, lent = Bell(fd), self._tables.get(worker_id)
        if lent is None:
            bell.close()
        else:
            self._hung[worker_id] = _Hung(queue, bell, lent.table)

    def take_down(self, worker_id: str) -> None:
        """Its worker has left, or is dead."""
        hung = self._hung.pop(worker_id, None)
        if hung is not None:
            hung.bell.close()

    def ring_one(self, queue: str) -> None:
        """That of the idlest, if any has room."""
        best = waking.best(self._of(queue), lambda hung: hung.table, self._clock())
        if best is not None:
            best.bell.ring()

    def ring_all(self, queue: str) -> None:
        """One that was woken did not take what is due: it may have room for other names alone."""
        for hung in self._of(queue):
            if waking.room(hung.table) > 0:
                hung.bell.ring()

    def _of(self, queue: str) -> list[_Hung]:
        if self._clock() - self._spoken_at > SILENCE:
            return []
        return [hung for hung in self._hung.values() if hung.queue == queue]
