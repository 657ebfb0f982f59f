"""How fast two processes drain no-op tasks from one SQLite file, beside the other SDK from PyPI on one of its own."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from functools import partial
from pathlib import Path
from typing import IO

from bench.figures import Figure
from bench.session import Session
from bench.sqlite_workers import our_worker, peers_worker
from cairnq import SqliteStore
from cairnq.pure.ids import new_task_id
from tests.support import peers
from tests.support.peers import Peer

TASKS = 20_000
WORKERS = 2
LOOK_S = 0.1
BATCH = 100
SETTINGS: dict[str, list[tuple[int, int | None]]] = {
    "a call a task": [(16, None), (100, None), (500, None)],
    "100 tasks a call": [(4, BATCH), (100, BATCH)],
}
"""Concurrency, and tasks a call: each SDK is measured with all of them and compared by its best."""

_LEFT = "select exists (select 1 from cairnq_tasks where status in ('queued', 'running'))"
_NTH_END = """
select completed_at_ms from cairnq_tasks where status = 'succeeded'
order by completed_at_ms limit 1 offset (select count(*) * ? / 100 from cairnq_tasks)
"""

Start = Callable[..., AbstractContextManager[IO[str]]]


def measure(session: Session) -> Iterator[Figure]:
    """Both on the disk of the temporary folder: a commit waits for it."""
    tasks = TASKS // 10 if session.quick else TASKS
    peer = peers.install(peers.NEWEST)
    start_theirs = partial(peers_worker, peer)
    best = {"ours": 0.0, "theirs": 0.0}
    with tempfile.TemporaryDirectory(prefix="cairnq-bench-") as folder:
        for way, settings in SETTINGS.items():
            some = settings[-1:] if session.quick else settings
            ours = _best(Path(folder), _make_ours, our_worker, some, tasks)
            theirs = _best(Path(folder), partial(_make_theirs, peer), start_theirs, some, tasks)
            best = {"ours": max(best["ours"], ours), "theirs": max(best["theirs"], theirs)}
            yield _figure(f"{tasks:,} no-op tasks from a file, {way},", peer, ours, theirs)
    yield _figure(f"{tasks:,} no-op tasks from a file", peer, best["ours"], best["theirs"], target=3)


def _figure(what: str, peer: Peer, ours: float, theirs: float, target: float | None = None) -> Figure:
    name = f"drain of {what} beside cairnq {peer.version}, {WORKERS} processes"
    detail = f"{ours:,.0f} tasks a second beside {theirs:,.0f}, each with the best of its settings"
    return Figure(name, ours / theirs, "x", detail, target=target, better="higher")


def _best(
    folder: Path,
    make: Callable[[Path], None],
    start: Start,
    settings: list[tuple[int, int | None]],
    tasks: int,
) -> float:
    rates = []
    for concurrency, batch in settings:
        path = folder / f"{new_task_id()}.db"
        make(path)
        _fill(path, tasks)
        rates.append(_rate(path, tasks, partial(start, str(path), concurrency, batch)))
    return max(rates)


def _rate(path: Path, tasks: int, start: Callable[[], AbstractContextManager[IO[str]]]) -> float:
    """Tasks a second between the first and the last twentieth: start-up and the end of work left out."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        with ExitStack() as workers:
            for _ in range(WORKERS):
                workers.enter_context(start())
            while connection.execute(_LEFT).fetchone()[0]:
                time.sleep(LOOK_S)
        first, last = (connection.execute(_NTH_END, [percent]).fetchone()[0] for percent in (5, 95))
    return 0.9 * tasks / (last - first) * 1000


def _fill(path: Path, tasks: int) -> None:
    now = time.time_ns() // 1_000_000
    rows = ((task_id, now, now, now, task_id) for task_id in (new_task_id() for _ in range(tasks)))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(
            "insert into cairnq_tasks (id, name, status, payload, run_at_ms, created_at_ms, updated_at_ms, root_id) "
            "values (?, 'noop', 'queued', '{\"n\":1}', ?, ?, ?, ?)",
            rows,
        )


def _make_ours(path: Path) -> None:
    async def connect_once() -> None:
        store = SqliteStore(path)
        await store.connect()
        await store.close()

    asyncio.run(connect_once())


def _make_theirs(peer: Peer, path: Path) -> None:
    async def connect_once() -> None:
        async with peers.running(peer, str(path)):
            pass

    asyncio.run(connect_once())
