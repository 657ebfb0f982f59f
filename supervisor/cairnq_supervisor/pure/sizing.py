"""How many worker processes a queue is to have: more while all are busy and work waits, fewer after idleness."""

from __future__ import annotations

from dataclasses import dataclass, replace

QUIET_LOOKS = 2
"""Looks in a row that must find a whole worker too many before one leaves."""


@dataclass(frozen=True, slots=True)
class Load:
    """What one look found. `room`: calls that the ready workers could still take; `due`: tasks that wait."""

    processes: int
    ready: int
    room: int
    due: int
    concurrency: int

    @property
    def is_short(self) -> bool:
        """Everybody is there and busy, and there is work for more."""
        return self.ready >= self.processes and self.room <= 0 and self.due > 0

    @property
    def has_too_many(self) -> bool:
        """One worker fewer could do the same."""
        return self.due == 0 and self.ready >= self.processes and self.room >= self.concurrency


@dataclass(frozen=True, slots=True)
class Sizing:
    """One queue's record. `low` and `high` are processes."""

    low: int
    high: int
    quiet_looks: int = 0

    def after_sample(self, load: Load) -> int:
        """The processes wanted now: up to twice as many, but no more than have something to do."""
        if not load.is_short:
            return load.processes
        useful = -(-load.due // load.concurrency)
        return max(load.processes, min(self.high, load.processes * 2, load.processes + useful))

    def after_look(self, load: Load) -> tuple[Sizing, int]:
        """The record, and the processes wanted, after one of the looks that follow each other at a fixed interval."""
        if not load.has_too_many:
            return replace(self, quiet_looks=0), load.processes
        if self.quiet_looks + 1 < QUIET_LOOKS:
            return replace(self, quiet_looks=self.quiet_looks + 1), load.processes
        return replace(self, quiet_looks=0), max(self.low, load.processes - 1)
