"""What `cairnq check` and `cairnq status` say to programs and to pipes, held against a supervisor that runs."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys

from tests.process.support import said_by
from tests.support.promised import json_keys

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


async def test_what_a_supervisor_says_in_json_has_the_documented_keys(runs, client):
    run = await runs.start('http = "127.0.0.1:0"\n' + CONFIG)
    await run.ready()

    async def printed(*arguments):
        return json.loads(await said_by(run, *arguments, "--json"))

    status = await printed("status")
    assert [status.keys()] == json_keys("`status`")
    for part in ("supervisor", "keeper", "gateway", "totals"):
        assert [status[part].keys()] == json_keys(f"its `{part}`")
    (queue,), (worker,) = status["queues"], status["workers"]
    assert [queue.keys() | queue["processes"].keys()] == json_keys("each of its `queues`")
    assert [worker.keys()] == json_keys("each of its `workers`")
    said = [await printed("pause"), await printed("scale", "default", "1"), await printed("drain")]
    pause, scale, drain, _ = json_keys("`pause`")
    assert [each.keys() for each in said] == [pause, scale, drain]
    assert await run.exit_code() == 0


async def test_the_live_view_ends_when_its_reader_has_left(runs):
    run = await runs.start(CONFIG)
    await run.ready()
    ours, theirs = os.pipe()
    watching = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cairnq_supervisor", "status", "--watch", "-c", str(run.config)), stdout=theirs
    )
    os.close(theirs)
    assert await asyncio.to_thread(os.read, ours, 10) == b"supervisor"
    os.close(ours)
    assert await watching.wait() == 0
    assert await run.stop() == 0
