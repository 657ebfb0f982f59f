"""One drain of a filled queue by the workers of one system: how fast, and what it cost the workers and the server."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psutil

from bench import notes
from bench.counters import Observer
from bench.process import Process
from bench.session import Session, folder
from bench.systems.base import Setting, System, Work

LOOK_S = 0.02
MOMENTS = 400
"""About so many a drain."""
DRAIN_S = 40.0


@dataclass(frozen=True, slots=True)
class Asked:
    """One drain: of `count` tasks of `size` bytes, or of as many as `seconds` after the first call let it do."""

    count: int
    handler: str = "noop"
    processes: int = 1
    size: int = 100
    seconds: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Drained:
    rate: float
    """Tasks a second."""
    worker_us: float
    """Processor time a task, of the workers and who looks after them."""
    server_us: float
    statements: float
    wal: float
    cut_off: bool = False
    """Whether it was not done in `DRAIN_S`: then its rate is of calls, without the last of them."""

    def __str__(self) -> str:
        return f"{self.rate:,.0f} tasks/s, {self.costs}"

    @property
    def costs(self) -> str:
        cpu = f"worker {self.worker_us:.0f} us, server {self.server_us:.0f} us, " if self.worker_us else ""
        rest = f", NOT DONE after {DRAIN_S:.0f} s" if self.cut_off else ""
        return f"{cpu}{self.statements:.3g} statements, {self.wal:,.0f} B of WAL a task{rest}"


def drain(session: Session, system: System, setting: Setting, asked: Asked) -> Drained:
    with session.database(system) as dsn:
        system.fill(dsn, asked.count, asked.size)
        session.tidy(dsn)
        return drain_in(session, dsn, system, setting, asked)


def drain_in(session: Session, dsn: str, system: System, setting: Setting, asked: Asked) -> Drained:
    """In a database that holds the tasks already."""
    every = max(1, min(asked.count, 40_000 if asked.seconds else asked.count) // MOMENTS)
    with folder() as noted, Observer(session.server, dsn) as observer:
        work = Work(noted, asked.handler, every, asked.processes, asked.options)
        before = observer.spent()
        workers = system.workers(dsn, setting, work)
        started = _cpu(workers)
        try:
            done, settled_at = _until_done(system, workers, observer, work, asked)
            after, cpu = observer.spent().since(before), _cpu(workers) - started  # while they live
        finally:
            for process in workers:
                process.end()
        if failed := observer.ask(system.failed):
            raise RuntimeError(f"{failed:,} tasks failed")
        rate = notes.rate(notes.numbers(noted), every, settled_at)
    cut_off = settled_at is None and asked.seconds is None
    return Drained(rate, cpu / done * 1e6, after.cpu / done * 1e6, after.statements / done, after.wal / done, cut_off)


def middle(found: Sequence[Drained]) -> Drained:
    """The one with the median rate."""
    return sorted(found, key=lambda one: one.rate)[len(found) // 2]


def _until_done(
    system: System, workers: Sequence[Process], observer: Observer, work: Work, asked: Asked
) -> tuple[int, int | None]:
    """How many were done, and when the last was settled (ns; None: not all were).

    Waits by the workers' notes, which costs the server nothing; the database has the last word.
    """
    deadline = time.monotonic() + DRAIN_S
    almost = asked.count - work.every * asked.processes
    until = None
    while (calls := notes.count(work.notes) * work.every) < almost or observer.ask(system.left):
        for process in workers:
            process.check()
        if asked.seconds and calls and until is None:
            until = time.monotonic() + asked.seconds
        if until is not None and time.monotonic() > until:
            return max(1, calls), None
        if time.monotonic() > deadline:
            if calls < MOMENTS // 2 * work.every:
                wrote = "".join(process.wrote() for process in workers)
                raise TimeoutError(f"about {calls:,} of {asked.count:,} tasks were done in {DRAIN_S:.0f} s{wrote}")
            return calls, None  # slower than it was thought to be; its rate is known all the same
        time.sleep(LOOK_S)
    return asked.count, time.monotonic_ns()


def _cpu(workers: Sequence[Process]) -> float:
    total = 0.0
    for worker in workers:
        for process in worker.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                total += times.user + times.system
    return total
