"""One run of the harness: its server, its systems, its steps, each bounded in time, and what has been found so far."""

from __future__ import annotations

import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TypeVar

import psycopg
from psycopg import sql

from bench.figures import short
from bench.systems.base import System
from bench.systems.installing import Unavailable
from tests.support.cluster import Cluster

Result = TypeVar("Result")
Step = Callable[[], Result]
STEP_S = 150.0


class OutOfTime(Exception):
    """A step took longer than it may, or none may begin any more."""


@dataclass
class Session:
    server: Cluster
    systems: Sequence[System]
    quick: bool
    rounds: int
    ends_at: float
    """Monotonic: no step begins after it."""
    failures: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    """What does not fit into the table: Markdown, shown below it."""
    began_at: float = field(default_factory=time.monotonic)
    _templates: dict[str, str] = field(default_factory=dict)

    def install(self) -> None:
        """All systems; one that is not to be had is left out, with a word."""
        present: list[System] = []
        for system in self.systems:
            start = time.monotonic()
            try:
                self.versions[system.name] = system.install().version
            except Unavailable as error:
                self.missing.append(f"{system.name}: {error}")
                say(f"{system.name} is left out: {error}")
            else:
                present.append(system)
                say(f"{system.name} {self.versions[system.name]} ({time.monotonic() - start:.0f} s)")
        self.systems = present

    def has(self, system: System) -> bool:
        return any(other.name == system.name for other in self.systems)

    def attempt(self, label: str, step: Step[Result], limit: float = STEP_S) -> Result | None:
        """What `step` returns. None if it fails: that is told, and costs nobody else's result."""
        start = time.monotonic()
        try:
            with _at_most(min(limit, self.ends_at - start)):
                result = step()
        except Exception as error:  # noqa: BLE001 - the border between a step and the others
            lines = [line for line in str(error).splitlines() if line.strip()] or [repr(error)]
            in_short = lines[0] if len(lines) == 1 else f"{lines[0]} ... {lines[-1].strip()}"
            self.failures.append(f"{label}: {type(error).__name__}: {in_short}")
            say(f"FAILED {label}: {type(error).__name__}:", *lines)
            return None
        say(f"  {label}: {_told(result)} ({time.monotonic() - start:.1f} s)")
        return result

    def rounds_of(self, what: str, steps: Mapping[str, Step[Result]], limit: float = STEP_S) -> dict[str, list[Result]]:
        """Every step once a round, in another order each time. A step that failed in one round has a shorter list."""
        results: dict[str, list[Result]] = {name: [] for name in steps}
        for number in range(1, self.rounds + 1):
            for name in random.sample(list(steps), len(steps)):  # whoever ran just before has left the caches warm
                result = self.attempt(f"{what}, {name}, run {number}", steps[name], limit)
                if result is not None:
                    results[name].append(result)
        return {name: found for name, found in results.items() if found}

    @contextmanager
    def database(self, system: System) -> Iterator[str]:
        """The DSN of a fresh database with the tables of `system`; dropped afterwards."""
        if system.name not in self._templates:
            template = self.server.create_database()
            system.setup(self.server.dsn(template))
            self._templates[system.name] = template
        name = self.server.create_database(self._templates[system.name])
        try:
            yield self.server.dsn(name)
        finally:
            with self.server.connect() as connection:
                connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))

    def tidy(self, dsn: str) -> None:
        """Statistics and visibility of the tables that are not the server's own."""
        with psycopg.connect(dsn, autocommit=True) as connection:
            found = connection.execute(
                "select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace "
                "where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema')"
            ).fetchall()
            for (table,) in found:
                connection.execute(f"vacuum (analyze) {table}".encode())


@contextmanager
def folder() -> Iterator[Path]:
    """For the notes of workers, and a configuration beside them."""
    path = Path(tempfile.mkdtemp(prefix="cairnq-bench-"))
    (path / "notes").mkdir()
    try:
        yield path / "notes"
    finally:
        shutil.rmtree(path, ignore_errors=True)


def say(*lines: str) -> None:
    print(*lines, sep="\n", file=sys.stderr, flush=True)


def ratios(mine: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Run by run: the machine's speed drifts by more than what is compared. Of medians where a run has failed."""
    if len(mine) != len(theirs):
        mine, theirs = [median(mine)], [median(theirs)]
    return [one / other for one, other in zip(mine, theirs, strict=True) if other]


def fastest(results: Mapping[str, Sequence[float]], names: Sequence[str]) -> str | None:
    """Which of `names` has the highest median, of those that have any."""
    present = [name for name in names if results.get(name)]
    return max(present, key=lambda name: statistics.median(results[name]), default=None)


def median(results: Sequence[float]) -> float:
    return statistics.median(results)


def _told(result: object) -> str:
    if isinstance(result, list):
        return f"{len(result)} figures"
    if isinstance(result, dict):
        return "".join(f"\n    {name}: {_told(value)}" for name, value in result.items()) + "\n   "
    return short(result) if isinstance(result, float) else str(result).partition("\n")[0]


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    def too_long(_number: int, _frame: FrameType | None) -> None:
        raise OutOfTime(f"it was ended after {seconds:.0f} s")

    if seconds <= 0:
        raise OutOfTime("the time for the whole run is over")
    before = signal.signal(signal.SIGALRM, too_long)
    outer, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, outer)
        signal.signal(signal.SIGALRM, before)
