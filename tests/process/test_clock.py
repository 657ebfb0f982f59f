"""The wall clock is set while a fleet runs on SQLite, where leases end by it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cairnq import CairnQ

FLEET = """
app = "gates:registry"
lease = "6s"
drain_timeout = "2s"
[queues.default]
concurrency = 20
"""

LIBRARIES = [
    *Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"),
    *Path("/usr/lib").glob("faketime/libfaketimeMT.so.1"),
]


@pytest.fixture
def server():
    """No PostgreSQL is needed here: each test has a file in its own folder."""


@pytest.fixture
def database(tmp_path):
    return str(tmp_path / "cairnq.db")


@pytest.mark.slow
@pytest.mark.skipif(not LIBRARIES, reason="libfaketime is not installed (apt-get install faketime)")
@pytest.mark.parametrize("step", ["+3600", "-3600"])
@pytest.mark.fault(row=23)
async def test_a_clock_set_by_an_hour_takes_no_task_from_its_worker(runs, gate, database, tmp_path, step):
    setting = tmp_path / "clock"
    setting.write_text("+0\n")
    environment = {
        "LD_PRELOAD": str(LIBRARIES[0]),
        "FAKETIME_TIMESTAMP_FILE": str(setting),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    run = await runs.start(FLEET, environment=environment)
    await run.ready()
    async with CairnQ.sqlite(database) as client:
        tasks = await client.submit_many([{"name": "gated", "payload": gate.path} for _ in range(10)])
        arrivals = await gate.arrivals(10)
        setting.write_text(step + "\n")
        stepped = await run.event("clock.stepped")
        assert abs(stepped["by_s"] - int(step)) < 1
        for _ in range(4):  # beats, with which more than one lease passes
            await run.event("lease.beat", renewed=10)
        assert run.count("lease.recovered") == 0
        assert run.count("lease.lost") == 0
        for arrival in arrivals:
            arrival.let_go()
        for task in tasks:
            done = await client.wait(task.id)
            assert (done.status, done.attempt) == ("succeeded", 1)
    assert gate.waiting == 0
    assert await run.stop() == 0


async def test_a_worker_whose_clock_is_not_the_supervisors_does_not_start(runs):
    run = await runs.start("preload = false\n" + FLEET.replace("gates", "frozen"))
    assert await run.exit_code() == 78
    reason = (await run.event("worker.boot-failed"))["reason"]
    assert re.search(r"clock is -3,(600|599)\.\d s off the supervisor's", reason)
