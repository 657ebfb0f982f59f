"""How soon two idle workers of one SQLite file pick up what another process submits: no server notifies here."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from bench import notes
from bench.figures import Figure
from bench.session import Session, folder
from bench.systems.base import Work
from bench.systems.ours import OURS

MUST_MS = 50.0
SETTLE_S = 1.0
APART_MS = 100.0
PERCENTS = (50, 95, 99)


def measure(session: Session) -> Iterator[Figure]:
    count = 10 if session.quick else 100
    with folder() as place:
        took = _took(place, count)
    for percent in PERCENTS:
        name = f"pick-up from a file, two idle workers under one supervisor, p{percent}"
        value = notes.percentile(took, percent) / 1000
        yield Figure(name, value, "ms", f"{count} submits of another process", None if percent == 99 else MUST_MS)


def _took(place: Path, count: int) -> list[int]:
    """Microseconds from the call of submit to the handler, the first one left out: it warms the client."""
    dsn, noted = f"sqlite:///{place}/tasks.db", place / "notes"
    noted.mkdir()
    OURS.setup(dsn)
    [workers] = OURS.workers(dsn, OURS.waiting, Work(noted, "pick_up", processes=2))
    try:
        time.sleep(SETTLE_S)
        OURS.submit(dsn, count=count, seconds=60.0, every_ms=APART_MS)
        deadline = time.monotonic() + 20
        while notes.count(noted) <= count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{notes.count(noted)} of {count + 1} tasks were picked up")
            time.sleep(0.05)
    finally:
        workers.end()
    return notes.numbers(noted)[1:]
