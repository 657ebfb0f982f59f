"""How fast one client submits, one by one and in bulk, while somebody listens; beside the bare insert and COPY."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from bench import floors
from bench.comparing import beside_peers
from bench.figures import Figure, of_runs, short
from bench.listener import listening
from bench.session import Session, median
from bench.systems import all_systems as systems
from bench.systems.base import BULK, System
from bench.systems.ours import OURS

ONE_BY_ONE, IN_BULK = (
    "submits one by one, one client, one listener",
    f"submits of {BULK:,} a call, one client, one listener",
)
ENDLESS = 10**9


@dataclass(frozen=True, slots=True)
class Submitted:
    rate: float
    p50_us: float

    def __str__(self) -> str:
        return f"{self.rate:,.0f} tasks/s, a call {short(self.p50_us / 1000)} ms"


def measure(session: Session) -> Iterator[Figure]:
    seconds = 0.4 if session.quick else 2.0
    one: dict[str, Callable[[], Submitted]] = {
        system.name: partial(_submit, session, system, seconds, bulk=0) for system in session.systems
    }
    many: dict[str, Callable[[], Submitted]] = {
        system.name: partial(_submit, session, system, seconds, bulk=BULK) for system in session.systems if system.bulk
    }
    one[floors.INSERT] = lambda: Submitted(*floors.inserts(session, seconds))
    many[floors.COPY] = lambda: Submitted(*floors.copies(session, seconds, BULK))
    yield from _figures(session, ONE_BY_ONE, one, {systems.PGQUEUER.name: 1.0})
    yield from _figures(session, IN_BULK, many, {systems.PGQUEUER.name: 1.0})


def _figures(
    session: Session, what: str, steps: dict[str, Callable[[], Submitted]], musts: dict[str, float]
) -> Iterator[Figure]:
    found = session.rounds_of(what, steps)
    rates = {key: [one.rate for one in runs] for key, runs in found.items()}
    yield from beside_peers(what, rates, OURS.name, musts)
    for key, runs in found.items():
        detail = f"a call takes {short(median([one.p50_us for one in runs]) / 1000)} ms at p50"
        yield of_runs(f"{what}: {key}", rates[key], "/s", detail, better="higher")


def _submit(session: Session, system: System, seconds: float, *, bulk: int) -> Submitted:
    with session.database(system) as dsn, listening(dsn, system.channel):
        said = system.submit(dsn, count=ENDLESS, seconds=seconds, bulk=bulk)
        return Submitted(said["count"] / said["seconds"], said["p50_us"])
