"""Payloads of 100 B, 10 kB and 1 MB: one client submits them one by one, then one process drains them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from bench.comparing import beside_fastest, name, settings_of
from bench.draining import Asked, drain_in
from bench.figures import Figure, of_runs
from bench.session import Session
from bench.systems.all_systems import PEERS
from bench.systems.base import Setting, System
from bench.systems.ours import DEFAULTS, OURS

COUNTS = {100: 2_000, 10_000: 1_000, 1_000_000: 60}
"""Tasks by size that are submitted: enough for a rate."""
DRAINED = {100: 30_000, 10_000: 5_000, 1_000_000: 120}
"""At most so many are there to be drained: enough for a rate of the fastest."""
DRAIN_S = 2.0
"""Or as many as are done in that time, by the pace of the setting."""
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
        steps = {
            name(system, setting): partial(_carry, session, system, setting, size, few)
            for system in session.systems
            for setting in settings_of(system, quick=session.quick)
        }
        found = session.rounds_of(what, steps)
        for field, verb in (("submitted", "submits"), ("drained", "drain")):
            runs = {key: [getattr(one, field) for one in ones] for key, ones in found.items()}
            yield from beside_fastest(f"{what}, {verb}", runs, name(OURS, DEFAULTS), PEERS)
            for key, values in runs.items():
                yield of_runs(f"{what}, {verb}: {key}", values, "/s", better="higher")


def _carry(session: Session, system: System, setting: Setting, size: int, count: int) -> Carried:
    with session.database(system) as dsn:
        said = system.submit(dsn, count=count, bytes=size, seconds=SUBMIT_S)
        more = 0 if session.quick else max(0, min(DRAINED[size], round(setting.pace * DRAIN_S)) - said["count"])
        if more:
            system.fill(dsn, more, size)
        session.tidy(dsn)
        asked = Asked(said["count"] + more, handler="read", size=size)
        drained = drain_in(session, dsn, system, setting, asked)
    return Carried(said["count"] / said["seconds"], drained.rate)
