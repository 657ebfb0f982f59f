"""Rows 13 and 14: SIGTERM at any moment, under load, again and again."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from tests.support.figures import figure

FLEET = """
app = "gates:registry"
lease = "20s"
drain_timeout = "400ms"
[queues.default]
processes = 2
concurrency = 8
[queues.plain]
concurrency = 3
"""

DRAINS = figure(10, 100)
PER_DRAIN = 30


def load(choice):
    """Short ones, ones that outlast the drain, ones that block their loop or their thread."""
    kinds = (
        *[{"name": "unhurried"}] * 12,
        {"name": "hoard", "payload": 0},  # takes three seconds
        {"name": "blocking", "payload": {"seconds": 0.1}},
        {"name": "resting", "payload": 0.3, "queue": "plain"},
    )
    return [{"max_attempts": 1000, **choice.choice(kinds)} for _ in range(PER_DRAIN)]


@pytest.mark.slow
@pytest.mark.timeout(20 * DRAINS + 100)
@pytest.mark.fault(row=13)
@pytest.mark.fault(row=14)
async def test_drains_at_random_moments_leave_no_row_running_and_cost_no_attempt(runs, client):
    seed = random.randrange(1 << 32)
    choice, tasks = random.Random(seed), []
    for number in range(DRAINS):
        tasks += await client.submit_many(load(choice))
        run = await runs.start(FLEET)
        await run.event("supervisor.starting")
        await asyncio.sleep(choice.uniform(0.0, 0.9))  # sleep: at any moment, the start included
        assert await run.stop() == 0, (seed, number, run.transcript())
        assert await client.list(status="running") == [], (seed, number, run.transcript())
        attempts = Counter((task.status, task.attempt) for task in await client.list(limit=10_000))
        assert attempts.keys() <= {("queued", 0), ("succeeded", 1)}, (seed, number, attempts)
        assert run.count("supervisor.fault") == run.count("lease.lost") == 0, (seed, number, run.transcript())
    last = await runs.start(FLEET)
    for task in tasks:
        done = await client.wait(task.id, timeout_ms=60_000)
        assert (done.status, done.attempt) == ("succeeded", 1), (seed, done)
    assert await last.stop() == 0
