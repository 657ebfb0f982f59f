"""Where our worker's processor time goes: one drain by a standalone worker under cProfile, which slows it by half."""

from __future__ import annotations

import pstats
import time
from pathlib import Path

from bench import notes
from bench.counters import Observer
from bench.process import Process
from bench.session import Session, folder
from bench.systems.base import Work
from bench.systems.ours import OURS, STANDALONE

TOP = 15
WAIT_S = 60.0
LOOK_S = 0.05


def profile(session: Session, handler: str, concurrency: int, count: int) -> str:
    """The functions that take the most time of their own, as a table in Markdown."""
    with session.database(OURS) as dsn, folder() as noted, Observer(session.server, dsn) as observer:
        OURS.fill(dsn, count, 100)
        session.tidy(dsn)
        file = noted.parent / "profile"
        options = {"concurrency": concurrency, "profile": str(file)}
        work = Work(noted, handler, every=max(1, count // 50), options=options)
        (worker,) = STANDALONE.workers(dsn, STANDALONE.waiting, work)
        with worker:
            _wait(worker, observer, work, count)
            worker.finish()
        return _table(file, count)


def _wait(worker: Process, observer: Observer, work: Work, count: int) -> None:
    deadline = time.monotonic() + WAIT_S
    while (calls := notes.count(work.notes) * work.every) < count or observer.ask(OURS.left):
        worker.check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"about {calls:,} of {count:,} tasks were done in {WAIT_S:.0f} s")
        time.sleep(LOOK_S)


def _table(file: Path, count: int) -> str:
    stats: dict[tuple[str, int, str], tuple[int, int, float, float, object]] = vars(pstats.Stats(str(file)))["stats"]
    ordered = sorted(stats.items(), key=lambda item: -item[1][2])
    total = sum(own for _, (_, _, own, _, _) in ordered)
    rows = [
        f"| {_place(*place)} | {calls / count:.2f} | {own / count * 1e6:.1f} |"
        for place, (_, calls, own, _, _) in ordered[:TOP]
    ]
    head = f"| function ({total / count * 1e6:.0f} us a task in all) | calls a task | own us a task |\n|---|---|---|"
    return "\n".join([head, *rows])


def _place(file: str, line: int, name: str) -> str:
    return f"{'/'.join(Path(file).parts[-2:])}:{line} {name}" if line else name
