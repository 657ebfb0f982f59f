"""An idle standalone worker: its statements a second, and how soon it picks a new task up."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from typing import IO

import psycopg

from bench import databases
from bench.figures import Figure
from bench.processes import bare_worker, our_worker
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
    dsn, bare = databases.ours(server), databases.ours(server)
    databases.fill(dsn, 0)
    with our_worker(dsn) as ours, bare_worker(bare) as least:
        time.sleep(SETTLE_S)
        yield _statements(dsn, seconds=10 if quick else 40)
        both = [(dsn, ours), (bare, least)]
        yield from _latency(*asyncio.run(_pick_up(both, samples=60 if quick else 300)))


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


def _latency(took: list[float], least: list[float]) -> Iterator[Figure]:
    """Milliseconds, in the same moments: of a worker, and of a bare connection that claims."""
    ours, bare = [_percentiles(times) for times in (took, least)]
    detail = f"submit called to handler started, {len(took)} submits; a bare listener that claims: {{:.1f}} ms"
    yield Figure("pick-up by an idle worker, p95", ours[95], "ms", detail.format(bare[95]), target=10)
    yield Figure("pick-up by an idle worker, p50", ours[50], "ms", detail.format(bare[50]))


def _percentiles(times: list[float]) -> dict[int, float]:
    ordered = sorted(times)
    return {percent: ordered[len(ordered) * percent // 100] for percent in (50, 95)}


async def _pick_up(both: Sequence[tuple[str, IO[str]]], *, samples: int) -> tuple[list[float], list[float]]:
    """Milliseconds from a submit to whoever waits for it, by turns."""
    took: tuple[list[float], list[float]] = ([], [])
    async with CairnQ.postgres(both[0][0]) as first, CairnQ.postgres(both[1][0]) as second:
        for _ in range(samples):
            for client, (_, output), times in zip((first, second), both, took, strict=True):
                await asyncio.sleep(random.uniform(0.12, 0.2))
                await client.submit("noop", {"at_ns": time.monotonic_ns()})
                times.append(int(await asyncio.to_thread(output.readline)) / 1000)
    return took
