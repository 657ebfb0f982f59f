"""The database goes away and comes back while the fleet works."""

from __future__ import annotations

import pytest

from tests.process.test_control import status

FLEET = """
app = "gates:registry"
lease = "20s"
[queues.default]
processes = 2
concurrency = 4
"""


@pytest.mark.fault(row=19)
async def test_an_outage_costs_no_process_and_no_result_and_is_two_lines(runs, client, gate, proxy, database):
    run = await runs.start(FLEET, dsn=proxy.dsn(database))
    await run.ready()
    tasks = [await client.submit("gated", gate.path) for _ in range(4)]
    arrivals = await gate.arrivals(4)
    await run.event("keeper.listening")
    proxy.refuse()
    await run.event("database.failed")
    await run.event("keeper.listen-lost")
    assert (await status(run))["keeper"]["listening"] is False
    for arrival in arrivals:
        arrival.let_go()
    await run.event("database.failed-too")
    proxy.pass_through()
    for task in tasks:
        done = await client.wait(task.id)
        assert (done.status, done.attempt) == ("succeeded", 1)
    await run.event("database.recovered")
    await run.event("keeper.listening")
    assert await client.call("echo", 1) == 1
    assert await run.stop() == 0
    assert run.count("worker.died") == run.count("keeper.died") == 0
    assert run.count("database.failed") <= 2  # the keeper may notice after the first worker has recovered
    lines = [event for event in run.heard if event["level"] in ("warning", "error")]
    assert {event["event"] for event in lines} == {"database.failed", "keeper.listen-lost"}


@pytest.mark.fault(row=19)
async def test_a_network_that_swallows_everything_does_not_stop_the_beats_for_good(runs, client, gate, proxy, database):
    run = await runs.start(FLEET.replace("20s", "5s"), dsn=proxy.dsn(database))
    await run.ready()
    await client.submit("gated", gate.path)
    arrival = await gate.arrival()
    await run.event("lease.beat", renewed=1)
    proxy.black_hole()
    await run.event("database.failed")
    proxy.pass_through()
    await run.event("lease.beat", renewed=1)
    arrival.let_go()
    assert (await client.wait(arrival.task_id)).attempt == 1
    assert run.count("lease.lost") == 0
    assert await run.stop() == 0


async def test_a_drain_during_an_outage_ends_on_time_and_says_what_is_left(runs, client, gate, proxy, database):
    run = await runs.start('drain_timeout = "1s"' + FLEET, dsn=proxy.dsn(database))
    await run.ready()
    await client.submit("gated", gate.path)
    await gate.arrival()
    proxy.refuse()
    await run.event("database.failed")
    assert await run.stop() == 70
    await run.event("drain.incomplete")
