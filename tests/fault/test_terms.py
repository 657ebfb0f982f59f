"""Row 3: SIGTERM from the command's first line on: while it imports, between its forks, as a child begins."""

from __future__ import annotations

import asyncio
import random
import signal
from pathlib import Path

import pytest

from tests.process.support import until
from tests.support.figures import figure

FLEET = """
app = "gates:registry"
[queues.default]
processes = 3
"""

TERMS = figure(20, 100)


@pytest.mark.slow
@pytest.mark.timeout(20 * TERMS + 100)
@pytest.mark.fault(row=3)
async def test_a_term_at_any_moment_of_the_start_ends_it_in_order(runs, client):
    seed = random.randrange(1 << 32)
    choice = random.Random(seed)
    for number in range(TERMS):
        await client.submit("echo", number)
        run = await runs.start(FLEET)
        await until(lambda run=run: minds_term(run.pid))
        await asyncio.sleep(choice.uniform(0.0, 0.7))  # sleep: at any moment
        assert await run.stop() == 0, (seed, number, run.transcript())
        assert run.living() == [], (seed, number, run.transcript())
        assert run.count("worker.died") == run.count("supervisor.fault") == 0, (seed, number, run.transcript())
        standing = {(task.status, task.attempt) for task in await client.list(limit=1_000)}
        assert standing <= {("queued", 0), ("succeeded", 1)}, (seed, number, run.transcript())


def minds_term(pid):
    """Whether it blocks or handles SIGTERM, which a Python that has not come to our first line does not."""
    fields = dict(line.split(":\t") for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
    return bool((int(fields["SigBlk"], 16) | int(fields["SigCgt"], 16)) >> (signal.SIGTERM - 1) & 1)
