"""What it costs to hold 10,000 tasks that run: statements, rows, WAL and server time in each third of a lease."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.comparing import compared
from bench.counters import Observer, Spent
from bench.figures import Figure, of_runs
from bench.session import Session, folder
from bench.systems import all_systems as systems
from bench.systems.base import System, Work
from bench.systems.ours import OURS
from bench.workloads.cost import without_full_page_images

LEASES, QUICK_LEASES = 10_000, 1_000
LEASE_S, QUICK_LEASE_S = 30, 3
"""Of which ours and PyPI cairnq renew each lease at a third, and pgqueuer at a half; the others never."""
BEATS = 3
HELD_S = 90.0
HOLDERS = (OURS, systems.PYPI_CAIRNQ, systems.PGQUEUER)
PROCESSES = {OURS.name: 2}
LEASE_OPTION: Mapping[str, Callable[[int], Mapping[str, Any]]] = {
    OURS.name: lambda seconds: {"lease": f"{seconds}s"},
    systems.PYPI_CAIRNQ.name: lambda seconds: {"lease_ms": seconds * 1000},
    systems.PGQUEUER.name: lambda seconds: {"heartbeat_s": seconds},
}


@dataclass(frozen=True, slots=True)
class Beat:
    spent: Spent
    beats: int

    def __str__(self) -> str:
        per = {name: getattr(self.spent, name) / self.beats for name in ("statements", "rows", "wal", "milliseconds")}
        return (
            f"{per['statements']:,.0f} statements, {per['rows']:,.0f} rows, {per['wal'] / 1e6:.2f} MB of WAL, "
            f"{per['milliseconds']:,.0f} ms a beat"
        )

    def each(self, name: str) -> float:
        return float(getattr(self.spent, name)) / self.beats


def measure(session: Session) -> Iterator[Figure]:
    leases = QUICK_LEASES if session.quick else LEASES
    what = f"holding {leases:,} tasks"
    with without_full_page_images(session.server):
        steps = {system.name: partial(_hold, session, system, leases) for system in HOLDERS if session.has(system)}
        found = session.rounds_of(what, steps)
    yield from _ratios(what, found)
    for name, beats in found.items():
        runs = [one.each("milliseconds") for one in beats]
        must = 150 if name == OURS.name else None
        yield of_runs(f"{what}: server time a beat, {name}", runs, "ms", str(beats[-1]), target=must)


def _ratios(what: str, found: Mapping[str, Sequence[Beat]]) -> Iterator[Figure]:
    for name, said, must in (("statements", "statements", 1 / 50), ("wal", "WAL", 1 / 4), ("rows", "rows", None)):
        runs = {system: [one.each(name) for one in beats] for system, beats in found.items()}
        for peer in HOLDERS[1:]:
            aim = must if peer is systems.PYPI_CAIRNQ else None
            yield from compared(f"{what}: {said} a beat", runs, OURS.name, peer.name, aim, unit="", better="lower")


def _hold(session: Session, system: System, leases: int) -> Beat:
    processes = PROCESSES.get(system.name, 1)
    with session.database(system) as dsn, folder() as noted, Observer(session.server, dsn) as observer:
        system.fill(dsn, leases, 100)
        session.tidy(dsn)
        lease = QUICK_LEASE_S if session.quick else LEASE_S
        options = {**system.concurrency_of(leases // processes), **LEASE_OPTION[system.name](lease)}
        work = Work(noted, "hold", processes=processes, options=options)
        workers = system.workers(dsn, system.best, work)
        try:
            deadline = time.monotonic() + HELD_S
            while (held := observer.ask(system.held)) < leases:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{held:,} of {leases:,} were held after {HELD_S:.0f} s")
                time.sleep(0.2)
            time.sleep(lease / BEATS)  # the claims are over, and the first beats are due
            before = observer.spent()
            time.sleep(lease)
            return Beat(observer.spent().since(before), BEATS)
        finally:
            for worker in workers:
                worker.end()
