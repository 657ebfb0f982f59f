"""Whether a deep queue slows a drain: 1,000,000 tasks waiting, then beside 5,000,000 finished; one run, one peer."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial

from bench import databases
from bench.comparing import name
from bench.counters import Observer
from bench.draining import Asked, Drained, drain, drain_in
from bench.figures import Figure, short
from bench.session import Session, say
from bench.systems import all_systems as systems
from bench.systems.base import System
from bench.systems.ours import OURS

SHALLOW, WAITING, FINISHED = 20_000, 1_000_000, 5_000_000
QUICK_SHARE = 100
"""A quick run has so much less of the deep ones."""
SECONDS = 4.0
LIMIT_S = 480.0
MUST = 0.9
BATCH = 250_000
"""Rows in one insert."""
DEEP = (OURS, systems.PYPI_CAIRNQ)


def measure(session: Session) -> Iterator[Figure]:
    share = QUICK_SHARE if session.quick else 1
    for system in DEEP:
        if session.has(system):
            yield from _of(session, system, WAITING // share, FINISHED // share)


def _of(session: Session, system: System, waiting: int, finished: int) -> Iterator[Figure]:
    setting, who = system.best, name(system, system.best)
    asked = Asked(min(SHALLOW, setting.pace * 3) if not session.quick else setting.pace // 2, processes=2)
    found = session.rounds_of(
        "backlog", {f"{who}, {asked.count:,} waiting": partial(drain, session, system, setting, asked)}
    )
    deep = session.attempt(f"backlog, {who}", partial(_deep, session, system, waiting, finished), LIMIT_S)
    shallow = [one.rate for runs in found.values() for one in runs]
    if not shallow or deep is None:
        return
    for what, drained in deep.items():
        rate = statistics.median(shallow)
        detail = f"{short(drained.rate)} a second beside {short(rate)}, {drained.costs}"
        must = MUST if system is OURS else None
        title = f"drain with {what} beside {asked.count:,} waiting: {who}"
        yield Figure(title, drained.rate / rate, "x", detail, target=must, better="higher")


def _deep(session: Session, system: System, waiting: int, finished: int) -> dict[str, Drained]:
    """Both in one database: what the first drain has done is made up for before the second."""
    asked = Asked(waiting, processes=2, seconds=1.0 if session.quick else SECONDS)
    drained: dict[str, Drained] = {}
    with session.database(system) as dsn:
        _insert(dsn, waiting, "queued", 1)
        session.tidy(dsn)
        drained[f"{waiting:,} waiting"] = drain_in(session, dsn, system, system.best, asked)
        with Observer(session.server, dsn) as observer:
            done = observer.ask("select count(*) from cairnq_tasks where status <> 'queued'")
        _insert(dsn, done, "queued", 10 * waiting)
        _insert(dsn, finished, "succeeded", 20 * waiting)
        session.tidy(dsn)
        what = f"{waiting:,} waiting and {finished:,} finished"
        drained[what] = drain_in(session, dsn, system, system.best, asked)
    return drained


def _insert(dsn: str, count: int, status: str, first: int) -> None:
    for start in range(first, first + count, BATCH):
        some = min(BATCH, first + count - start)
        databases.fill(dsn, some, name="work", status=status, first=start, tidy=False)
        say(f"    {start + some - first:,} {status}")
