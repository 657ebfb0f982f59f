"""A process of the fleet that has no descriptor left."""

from __future__ import annotations

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
async def test_a_worker_that_did_not_reach_the_keeper_is_lent_again_and_a_dead_one_is_not_waited_for(runs, client):
    run = await runs.start(FLEET)
    await run.event("keeper.listening")
    await run.ready()
    keeper = (await run.event("keeper.ready"))["pid"]
    limits = resource.prlimit(keeper, resource.RLIMIT_NOFILE)
    resource.prlimit(keeper, resource.RLIMIT_NOFILE, (0, limits[1]))
    lent = await run.event("worker.ready")
    run.kill(lent["pid"])
    unlent = await run.event("keeper.fault")
    run.kill((await run.event("worker.ready", worker_id=unlent["worker_id"]))["pid"])
    await run.event("keeper.fault")
    await run.event("worker.ready")
    resource.prlimit(keeper, resource.RLIMIT_NOFILE, limits)
    await run.event("keeper.listening")
    assert await client.call("echo", 1) == 1
    assert run.count("keeper.fault") == 2, "one a worker"
    assert await run.stop() == 0
