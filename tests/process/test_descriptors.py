"""A process of the fleet that has no descriptor left."""

from __future__ import annotations

import asyncio
import resource
import signal

import pytest

FLEET = """
app = "gates:registry"
[queues.default]
processes = 1
"""


@pytest.mark.sqlite
@pytest.mark.fault(row=24)
async def test_a_keeper_that_cannot_take_a_workers_table_says_whose_leases_it_will_not_renew(runs):
    run = await runs.start(FLEET)
    await run.event("keeper.listening")
    await run.ready()
    keeper = (await run.event("keeper.ready"))["pid"]
    await run.event("worker.ready")
    limits = resource.prlimit(keeper, resource.RLIMIT_NOFILE)
    resource.prlimit(keeper, resource.RLIMIT_NOFILE, (0, limits[1]))
    run.send(signal.SIGTTIN)
    fault = await run.event("keeper.fault")
    assert fault["level"] == "error"
    assert fault["worker_id"] == (await run.event("worker.ready"))["worker_id"]
    resource.prlimit(keeper, resource.RLIMIT_NOFILE, limits)
    assert await run.stop() == 0


@pytest.mark.sqlite
@pytest.mark.fault(row=24)
async def test_a_worker_that_the_keeper_cannot_wake_looks_for_itself(runs, client):
    run = await runs.start(FLEET)
    await run.event("keeper.listening")
    await run.ready()
    keeper = (await run.event("keeper.ready"))["pid"]
    limits = resource.prlimit(keeper, resource.RLIMIT_NOFILE)
    resource.prlimit(keeper, resource.RLIMIT_NOFILE, (0, limits[1]))
    run.kill((await run.event("worker.ready"))["pid"])
    await run.event("worker.ready")
    await run.event("keeper.fault")
    resource.prlimit(keeper, resource.RLIMIT_NOFILE, limits)
    for number in range(2):
        assert await client.call("echo", number) == number
        await asyncio.sleep(4)  # sleep: it looks after a start and after a task anyway, and rests then
    assert await run.stop() == 0
