"""Single submits with the wake-up trigger beside without it, one listener: in slices that take turns.

A machine's speed drifts by more than what is measured here; short slices, side by side, drift together.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import psycopg

from bench import databases
from bench.figures import Figure
from bench.floors import submit_script
from bench.listener import listening
from bench.server import pgbench
from bench.session import Session
from bench.workloads.triggers import NONE, OTHER, OURS
from cairnq import CairnQ
from tests.support.cluster import Cluster

CLIENTS = (1, 16)
SLICE = {1: 200, 16: 800}
"""Submits in a slice: a tenth to half a second."""
BULK = 1_000
"""Tasks in one insert."""
MUST = 0.8


Rate = Callable[[], float]


def measure(session: Session) -> Iterator[Figure]:
    server, quick = session.server, session.quick
    dsns = {variant: _database(server, variant) for variant in (NONE, OURS, *(() if quick else OTHER))}
    rounds = 3 if quick else 25
    for clients in CLIENTS:
        raw = {variant: _pgbench(server, dsn, clients) for variant, dsn in dsns.items()}
        yield from _figures(f"the statement by pgbench, {clients} clients", dsns, raw, rounds)
    for clients in CLIENTS:
        through = {variant: _client(dsns[variant], clients) for variant in (NONE, OURS)}
        yield from _figures(f"CairnQ.submit, {clients} at a time", dsns, through, rounds)
    bulk = {variant: _bulk(dsn) for variant, dsn in dsns.items()}
    yield from _figures(f"{BULK:,} tasks an insert", dsns, bulk, rounds, must=None)


def _database(server: Cluster, variant: str) -> str:
    dsn = databases.ours(server)
    with psycopg.connect(dsn, autocommit=True) as connection:
        if variant != OURS:
            connection.execute("alter table cairnq_tasks disable trigger cairnq_tasks_notify")
        if variant in OTHER:
            connection.execute(OTHER[variant].encode())
    return dsn


def _figures(
    what: str, dsns: Mapping[str, str], rates: Mapping[str, Rate], rounds: int, must: float | None = MUST
) -> Iterator[Figure]:
    with _listeners([dsns[variant] for variant in rates]):
        slices = _take_turns(rates, rounds)
    none = statistics.median(slices[NONE])
    for variant in rates:
        if variant != NONE:
            ratio = statistics.median(
                with_ / without for with_, without in zip(slices[variant], slices[NONE], strict=True)
            )
            detail = f"{statistics.median(slices[variant]):,.0f} a second beside {none:,.0f}, {rounds} pairs of slices"
            name = f"submits with the trigger ({variant}) beside none: {what}"
            yield Figure(name, ratio, "x", detail, target=must if variant == OURS else None, better="higher")


def _take_turns(rates: Mapping[str, Rate], rounds: int) -> dict[str, list[float]]:
    slices: dict[str, list[float]] = {variant: [] for variant in rates}
    for _ in range(rounds):
        for variant in random.sample(list(rates), len(rates)):  # whoever ran just before is warm
            slices[variant].append(rates[variant]())
    return slices


@contextmanager
def _listeners(dsns: Sequence[str]) -> Iterator[None]:
    if not dsns:
        yield
        return
    with listening(dsns[0]), _listeners(dsns[1:]):
        yield


def _pgbench(server: Cluster, dsn: str, clients: int) -> Rate:
    return lambda: pgbench(server, dsn, submit_script(), clients=clients, transactions=SLICE[clients])


def _client(dsn: str, clients: int) -> Rate:
    return lambda: asyncio.run(_submit(dsn, clients))


async def _submit(dsn: str, clients: int) -> float:
    payload = {"text": databases.PAYLOAD_TEXT}
    async with CairnQ.postgres(dsn, min_size=clients, max_size=clients) as client:
        await asyncio.gather(*(client.submit("noop", payload) for _ in range(4 * clients)))  # connected and prepared

        async def submit_some() -> None:
            for _ in range(SLICE[clients] // clients):
                await client.submit("noop", payload)

        start = time.perf_counter()
        await asyncio.gather(*(submit_some() for _ in range(clients)))
        return SLICE[clients] / (time.perf_counter() - start)


def _bulk(dsn: str) -> Rate:
    return lambda: asyncio.run(_submit_many(dsn))


async def _submit_many(dsn: str) -> float:
    items = [{"name": "noop", "payload": {"text": databases.PAYLOAD_TEXT}}] * BULK
    async with CairnQ.postgres(dsn) as client:
        await client.submit("noop")
        start = time.perf_counter()
        await client.store.submit_many(items)
        return BULK / (time.perf_counter() - start)
