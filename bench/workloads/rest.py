"""What a worker costs at rest, after a little work: statements a second, and its memory."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import psutil

from bench import notes
from bench.comparing import compared
from bench.figures import Figure, of_runs
from bench.session import Session
from bench.systems import all_systems as systems
from bench.systems.ours import OURS, STANDALONE
from bench.together import Standing, Wanted, standing

SETTLE_S, QUICK_SETTLE_S = 6.0, 3.0
TASKS = 200
MIB = 1 << 20
MUST_USS = 15.0
OURS_TWO = "ours, two workers under one supervisor"
STATEMENTS = "statements at rest"


@dataclass(frozen=True, slots=True)
class Rest:
    statements: float
    """A second, of all that this system has running."""
    uss: float
    """MiB, the mean over its workers; so are the others."""
    pss: float
    rss: float
    beside: float
    """MiB of PSS, of those that look after the workers."""

    def __str__(self) -> str:
        return f"{self.statements:.2f} statements/s, USS {self.uss:.1f}, PSS {self.pss:.1f}, RSS {self.rss:.1f} MiB"


def measure(session: Session) -> Iterator[Figure]:
    found: dict[str, list[Rest]] = {}
    seconds = 5 if session.quick else 30
    for number in range(1, session.rounds + 1):
        together = session.attempt(f"rest, all together, run {number}", partial(_rest, session, seconds))
        for name, rest in (together or {}).items():
            found.setdefault(name, []).append(rest)
    yield from _statements(found, seconds)
    yield from _memory(found)


def _statements(found: Mapping[str, list[Rest]], seconds: int) -> Iterator[Figure]:
    runs = {name: [rest.statements for rest in rests] for name, rests in found.items()}
    yield from compared(STATEMENTS, runs, OURS_TWO, systems.GRAPHILE.name, 1.0, better="lower")
    for name, values in runs.items():
        yield of_runs(f"{STATEMENTS}: {name}", values, "/s", f"over {seconds} s")


def _memory(found: Mapping[str, list[Rest]]) -> Iterator[Figure]:
    for name, rests in found.items():
        last = rests[-1]
        detail = f"PSS {last.pss:.1f}, RSS {last.rss:.1f} MiB"
        if last.beside:
            detail += f"; supervisor and keeper together {last.beside:.1f} MiB of PSS"
        must = MUST_USS if name == OURS_TWO else None
        yield of_runs(
            f"memory of a worker at rest, unshared (USS): {name}",
            [rest.uss for rest in rests],
            "MiB",
            detail,
            target=must,
        )


def _rest(session: Session, seconds: int) -> dict[str, Rest]:
    wanted = [
        Wanted(system.name, system, "sleep", setting=system.waiting if system is OURS else system.best)
        for system in session.systems
    ]
    wanted.insert(1, Wanted(OURS_TWO, OURS, "sleep", processes=2))
    wanted.insert(2, Wanted(STANDALONE.name, STANDALONE, "sleep", tables_of=OURS))
    with standing(session, wanted) as all_up:
        for up in all_up:
            up.system.fill(up.dsn, TASKS, 100)
        time.sleep(QUICK_SETTLE_S if session.quick else SETTLE_S)
        before = {up.name: up.observer.spent() for up in all_up}
        time.sleep(seconds)
        spent = {up.name: up.observer.spent().since(before[up.name]) for up in all_up}
        return {up.name: _of(up, spent[up.name].statements / seconds) for up in all_up}


def _of(up: Standing, statements: float) -> Rest:
    """Who wrote notes is a worker; who did not, looks after them."""
    working = notes.pids(up.notes)
    if not working:
        raise RuntimeError(f"{up.name} has run nothing")
    workers = [psutil.Process(pid).memory_full_info() for pid in working]
    others = [
        process.memory_full_info().pss
        for worker in up.workers
        for process in worker.family()
        if process.pid not in working
    ]
    uss, pss, rss = (statistics.mean(getattr(info, field) for info in workers) / MIB for field in ("uss", "pss", "rss"))
    return Rest(statements, uss, pss, rss, sum(others) / MIB)
