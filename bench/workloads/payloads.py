"""Payloads of 100 B, 10 kB and 1 MB: one client submits them one by one, then one process drains them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from bench.comparing import beside_peers
from bench.draining import Asked, drain_in
from bench.figures import Figure, of_runs
from bench.session import Session
from bench.systems.base import System
from bench.systems.ours import OURS

COUNTS = {100: 2_000, 10_000: 1_000, 1_000_000: 60}
"""Tasks by size: enough for a rate."""
SIZES = {100: "100 B", 10_000: "10 kB", 1_000_000: "1 MB"}
SUBMIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Carried:
    """A second."""

    submitted: float
    drained: float

    def __str__(self) -> str:
        return f"{self.submitted:,.0f} submits/s, then {self.drained:,.0f} tasks/s"


def measure(session: Session) -> Iterator[Figure]:
    for size, count in list(COUNTS.items())[-1 if session.quick else 0 :]:
        few = max(30, count // 10) if session.quick else count
        what = f"payloads of {SIZES[size]}"
        steps = {system.name: partial(_carry, session, system, size, few) for system in session.systems}
        found = session.rounds_of(what, steps)
        for name, verb in (("submitted", "submits"), ("drained", "drain")):
            runs = {system: [getattr(one, name) for one in ones] for system, ones in found.items()}
            yield from beside_peers(f"{what}, {verb}", runs, OURS.name, {})
            for system, values in runs.items():
                yield of_runs(f"{what}, {verb}: {system}", values, "/s", better="higher")


def _carry(session: Session, system: System, size: int, count: int) -> Carried:
    with session.database(system) as dsn:
        said = system.submit(dsn, count=count, bytes=size, seconds=SUBMIT_S)
        session.tidy(dsn)
        drained = drain_in(session, dsn, system, system.waiting, Asked(said["count"], handler="read", size=size))
    return Carried(said["count"] / said["seconds"], drained.rate)
