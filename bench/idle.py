"""An idle standalone worker: its statements a second, and how soon it picks a new task up."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Iterator
from typing import IO

import psycopg

from bench import databases
from bench.figures import Figure
from bench.processes import our_worker
from cairnq import CairnQ
from tests.support.cluster import Cluster

_CALLS = """
select sum(s.calls)::bigint from pg_stat_statements s
where s.dbid = (select oid from pg_database where datname = current_database())
    and s.query not like '%pg_stat_statements%'
"""
SETTLE_S = 3.0
"""Seconds until start-up, the listener's first self-test included, is over."""


def measure(server: Cluster, *, quick: bool) -> Iterator[Figure]:
    dsn = databases.ours(server)
    databases.fill(dsn, 0)
    with our_worker(dsn) as output:
        time.sleep(SETTLE_S)
        yield _statements(dsn, seconds=10 if quick else 40)
        yield from _latency(dsn, output, samples=60 if quick else 300)


def _statements(dsn: str, *, seconds: int) -> Figure:
    with psycopg.connect(dsn, autocommit=True) as connection:
        before = _calls(connection)
        time.sleep(seconds)
        calls = _calls(connection) - before
    name = "statements of an idle standalone worker"
    return Figure(name, calls / seconds, "/s", f"{calls} in {seconds} s, self-tests of LISTEN included", target=2.5)


def _calls(connection: psycopg.Connection[tuple[int]]) -> int:
    found = connection.execute(_CALLS).fetchone()
    return int(found[0] or 0) if found else 0


def _latency(dsn: str, output: IO[str], *, samples: int) -> Iterator[Figure]:
    took, submits = (sorted(times) for times in asyncio.run(_pick_up(dsn, output, samples)))
    p50, p95 = took[len(took) // 2], took[int(len(took) * 0.95)]
    detail = (
        f"submit called to handler started, {samples} submits; submit alone took {statistics.median(submits):.1f} ms"
    )
    yield Figure("pick-up by an idle worker, p95", p95, "ms", detail, target=10)
    yield Figure("pick-up by an idle worker, p50", p50, "ms", detail)


async def _pick_up(dsn: str, output: IO[str], samples: int) -> tuple[list[float], list[float]]:
    """Milliseconds from a submit to its handler, and to its own return."""
    took: list[float] = []
    submits: list[float] = []
    async with CairnQ.postgres(dsn) as client:
        for _ in range(samples):
            await asyncio.sleep(random.uniform(0.15, 0.35))
            at_ns = time.monotonic_ns()
            await client.submit("noop", {"at_ns": at_ns})
            submits.append((time.monotonic_ns() - at_ns) / 1_000_000)
            took.append(int(await asyncio.to_thread(output.readline)) / 1000)
    return took, submits
