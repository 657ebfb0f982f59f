"""How fast one client submits, one by one and in bulk, while somebody listens; beside the bare insert and COPY."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from bench import floors
from bench.comparing import beside_peers
from bench.counters import Observer
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
    client_us: float = 0.0
    server_us: float = 0.0
    """Processor time a task; of the floors none is taken."""

    def __str__(self) -> str:
        cpu = f", client {short(self.client_us)} us, server {short(self.server_us)} us" if self.client_us else ""
        return f"{self.rate:,.0f} tasks/s, a call {short(self.p50_us / 1000)} ms{cpu}"


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
        p50_us, client_us, server_us = (
            median([getattr(one, field) for one in runs]) for field in ("p50_us", "client_us", "server_us")
        )
        cpu = f", client {short(client_us)} us, server {short(server_us)} us a task" if client_us else ""
        detail = f"a call takes {short(p50_us / 1000)} ms at p50{cpu}"
        yield of_runs(f"{what}: {key}", rates[key], "/s", detail, better="higher")


def _submit(session: Session, system: System, seconds: float, *, bulk: int) -> Submitted:
    with (
        session.database(system) as dsn,
        listening(dsn, system.channel),
        Observer(session.server, dsn) as observer,
        system.client(dsn, count=ENDLESS, seconds=seconds, bulk=bulk) as client,
    ):
        before = observer.spent()
        said = system.result(client)
        server_us = observer.spent().since(before).cpu / said["count"] * 1e6
        return Submitted(said["count"] / said["seconds"], said["p50_us"], said["cpu_us"], server_us)
