"""What `cairnq check` foretells about a worker, held against one that runs."""

from __future__ import annotations

import json
import re

from tests.process.support import said_by

CONFIG = 'app = "gates:registry"\n[queues.default]\n'
NEAR = 4.0
"""MiB: of the allocator, and of what the commands import beside the supervisor's own modules."""


async def test_the_size_of_a_worker_is_foretold(runs, client):
    run = await runs.start(CONFIG)
    await run.ready()
    await client.wait((await client.submit("echo", 1)).id)
    (worker,) = json.loads(await said_by(run, "status", "--json"))["workers"]
    foretold = await said_by(run, "check", "--json")
    (booted,) = re.findall(r"a worker boots with ([\d.]+) MiB", foretold)
    assert abs(worker["rss"] / 2**20 - float(booted) - 3.0) < NEAR, foretold
    assert await run.stop() == 0
