"""How fast one worker process drains no-op tasks, beside the other SDK from PyPI on its own schema."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import IO

import psycopg

from bench import databases
from bench.figures import Figure
from bench.processes import our_worker, peers_worker
from tests.support import peers
from tests.support.cluster import Cluster

CONCURRENCY = (10, 64)
LOOK_S = 0.1

_RATE = """
select count(*) filter (where t.status = 'succeeded'),
    percentile_disc(0.05) within group (order by t.completed_at_ms),
    percentile_disc(0.95) within group (order by t.completed_at_ms)
from cairnq_tasks t
"""


def measure(server: Cluster, *, quick: bool) -> Iterator[Figure]:
    for concurrency in CONCURRENCY:
        mine = databases.ours(server)
        databases.fill(mine, 10_000 if quick else 40_000)
        ours = _rate(mine, our_worker(mine, concurrency))
        dsn, version = databases.peers_own(server, peers.NEWEST)
        databases.fill(dsn, 3_000 if quick else 10_000)
        theirs = _rate(dsn, peers_worker(peers.install(peers.NEWEST), dsn, concurrency))
        name = f"drain of no-op tasks beside cairnq {version}, one process, concurrency {concurrency}"
        detail = f"{ours:,.0f} tasks a second beside {theirs:,.0f}"
        yield Figure(name, ours / theirs, "x", detail, better="higher")


def _rate(dsn: str, worker: AbstractContextManager[IO[str]]) -> float:
    """Tasks a second between the first and the last twentieth: start-up and the end of work left out."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        with worker:
            while _left(connection):
                time.sleep(LOOK_S)
        found = connection.execute(_RATE).fetchone()
    assert found is not None
    done, first, last = found
    return float(0.9 * done / (last - first) * 1000)


def _left(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    """One look at an index: it takes nothing from the worker."""
    query = "select exists (select from cairnq_tasks where status = 'queued' or status = 'running')"
    found = connection.execute(query).fetchone()
    return bool(found and found[0])
