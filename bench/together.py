"""All systems at once, each idle in a database of its own: what is said of rest and latency is said of one moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.counters import Observer
from bench.process import Process
from bench.session import Session, folder
from bench.systems.base import Setting, System, Work


@dataclass(frozen=True, slots=True)
class Standing:
    name: str
    system: System
    dsn: str
    notes: Path
    workers: Sequence[Process]
    observer: Observer

    def __str__(self) -> str:
        return "up"


@dataclass(frozen=True, slots=True)
class Wanted:
    name: str
    system: System
    handler: str
    processes: int = 1
    setting: Setting | None = None
    """None: the one for waiting."""
    tables_of: System | None = None
    """Where they are not its own."""


@contextmanager
def standing(session: Session, wanted: Sequence[Wanted]) -> Iterator[list[Standing]]:
    """One that does not start is told of, and left out."""
    with ExitStack() as stack:
        found = []
        for one in wanted:
            up = session.attempt(f"start {one.name}", lambda one=one: _start(session, stack, one))  # type: ignore[misc]
            if up is not None:
                found.append(up)
        yield found


def _start(session: Session, stack: ExitStack, wanted: Wanted) -> Standing:
    dsn = stack.enter_context(session.database(wanted.tables_of or wanted.system))
    noted = stack.enter_context(folder())
    observer = stack.enter_context(Observer(session.server, dsn))
    work = Work(noted, wanted.handler, processes=wanted.processes)
    workers = wanted.system.workers(dsn, wanted.setting or wanted.system.waiting, work)
    for worker in workers:
        stack.enter_context(worker)
    return Standing(wanted.name, wanted.system, dsn, noted, workers, observer)
