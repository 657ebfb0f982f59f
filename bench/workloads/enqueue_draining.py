"""How fast one client submits one by one while one worker process drains the same queue."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench import notes
from bench.comparing import beside_peers
from bench.figures import Figure, of_runs
from bench.session import Session, folder
from bench.systems.base import System, Work
from bench.systems.ours import OURS

WHAT = "submits one by one, while one process drains"
ENDLESS = 10**9


def measure(session: Session) -> Iterator[Figure]:
    seconds = 0.5 if session.quick else 2.5
    rates = session.rounds_of(
        WHAT, {system.name: partial(_submits, session, system, seconds) for system in session.systems}
    )
    yield from beside_peers(WHAT, rates, OURS.name, {})
    for key, runs in rates.items():
        yield of_runs(f"{WHAT}: {key}", runs, "/s", better="higher")


def _submits(session: Session, system: System, seconds: float) -> float:
    """Submits a second. Whether the worker keeps up is not judged, but that it works at all."""
    with session.database(system) as dsn, folder() as noted:
        workers = system.workers(dsn, system.waiting, Work(noted))
        try:
            said = system.submit(dsn, count=ENDLESS, seconds=seconds)
        finally:
            for worker in workers:
                worker.end()
        if not notes.count(noted):
            raise RuntimeError("nothing was drained meanwhile")
    return float(said["count"] / said["seconds"])
