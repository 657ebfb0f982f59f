"""Rows 9, 10, 11, 16 and 23: leases under a slow database, many supervisors, dead hosts, long drains, wrong clocks."""

from __future__ import annotations

import asyncio
import signal

import pytest

from tests.process.test_clock import LIBRARIES

FLEET = """
app = "gates:registry"
lease = "2s"
drain_timeout = "20s"
[queues.default]
processes = 2
concurrency = 2
"""


@pytest.mark.fault(row=9)
async def test_a_fleet_that_is_cut_off_for_longer_than_its_lease_knows_it_before_anybody_tells(
    runs, client, gate, proxy, database
):
    """Another host runs the task again; only then can the first hear of the database, and it has long stopped."""
    run = await runs.start(FLEET, dsn=proxy.dsn(database))
    await run.ready()
    task = await client.submit("gated", gate.path)
    arrival = await gate.arrival()
    await run.event("lease.beat", renewed=1)
    proxy.black_hole()
    await arrival.cut_off()
    assert (await run.event("lease.lost"))["task_id"] == task.id
    other = await runs.start(FLEET)
    again = await gate.arrival()
    assert (again.task_id, again.attempt) == (task.id, 2)
    again.let_go("from the second host")
    assert (await client.wait(task.id)).result == "from the second host"
    proxy.pass_through()
    await run.event("database.recovered")
    assert await client.wait(task.id) == await client.get(task.id)
    assert await run.stop() == 0
    assert await other.stop() == 0
    assert (await client.get(task.id)).result == "from the second host"


@pytest.mark.fault(row=9)
async def test_beats_that_take_most_of_the_lease_end_the_call_before_another_begins(
    runs, client, gate, proxy, database
):
    """An answer that comes after nine tenths of a lease is no proof that the lease stands: the owner stops in time."""
    run = await runs.start(FLEET, dsn=proxy.dsn(database))
    await run.ready()
    task = await client.submit("gated", gate.path)
    arrival = await gate.arrival()
    await run.event("lease.beat", renewed=1)
    proxy.delay(0.9)  # each way
    assert (await run.event("lease.lost"))["task_id"] == task.id
    await arrival.cut_off()
    assert gate.waiting == 0
    proxy.pass_through()
    again = await gate.arrival()
    assert (again.task_id, again.attempt) == (task.id, 2)
    again.let_go()
    done = await client.wait(task.id)
    assert (done.status, done.attempt) == ("succeeded", 2)
    assert await run.stop() == 0


@pytest.mark.fault(row=10)
@pytest.mark.slow
async def test_a_task_of_many_leases_keeps_its_attempt_under_three_supervisors(runs, client, gate):
    fleets = [await runs.start(FLEET.replace('"2s"', '"1s"')) for _ in range(3)]
    for run in fleets:
        await run.ready()
    task = await client.submit("gated", gate.path)
    arrival = await gate.arrival()
    for _ in range(20):  # a beat each third of a lease: more than six leases
        await any_of(fleets, "lease.beat")
    arrival.let_go()
    assert (await client.wait(task.id)).attempt == 1
    assert gate.waiting == 0
    for run in fleets:
        assert run.count("lease.recovered") == run.count("lease.lost") == 0
        assert await run.stop() == 0


async def any_of(fleets, name):
    waiting = {asyncio.ensure_future(run.event(name, renewed=1)) for run in fleets}
    done, left = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for each in left:
        each.cancel()
    return done


@pytest.mark.fault(row=11)
async def test_what_a_dead_host_held_goes_to_another_after_its_lease(runs, client, gate):
    doomed = await runs.start(FLEET)
    await doomed.ready()
    tasks = [await client.submit("gated", gate.path) for _ in range(4)]
    arrivals = await gate.arrivals(4)
    doomed.send(signal.SIGKILL)
    for pid in doomed.living():
        doomed.kill(pid)
    for arrival in arrivals:
        await arrival.cut_off()
    other = await runs.start(FLEET)
    again = await gate.arrivals(4)
    assert {arrival.task_id for arrival in again} == {task.id for task in tasks}
    for arrival in again:
        assert arrival.attempt == 2
        arrival.let_go()
    for task in tasks:
        assert (await client.wait(task.id)).succeeded
    assert await other.stop() == 0


@pytest.mark.fault(row=16)
async def test_leases_are_renewed_all_through_a_drain_and_it_has_one_deadline(runs, client, gate):
    run = await runs.start(
        FLEET.replace("processes = 2", "processes = 4").replace("concurrency = 2", "concurrency = 1")
    )
    await run.ready()
    tasks = [await client.submit("gated", gate.path) for _ in range(4)]
    arrivals = await gate.arrivals(4)
    assert len({arrival.pid for arrival in arrivals}) == 4
    run.send(signal.SIGTERM)
    await run.event("drain.started")
    for _ in range(4):  # a beat each third of a lease: longer than one lease
        await run.event("lease.beat", renewed=4)
    for arrival in arrivals:
        arrival.let_go()
    for task in tasks:
        done = await client.wait(task.id)
        assert (done.status, done.attempt) == ("succeeded", 1)
    assert await run.exit_code() == 0
    assert run.count("drain.started") == 1
    assert run.count("lease.lost") == 0


@pytest.mark.fault(row=23)
@pytest.mark.slow
@pytest.mark.skipif(not LIBRARIES, reason="libfaketime is not installed (apt-get install libfaketime)")
async def test_hosts_whose_clocks_differ_by_two_hours_share_a_server(runs, client, gate):
    fleets = [
        await runs.start(FLEET, environment={"LD_PRELOAD": str(LIBRARIES[0]), "FAKETIME": offset, **MONOTONIC})
        for offset in ("+3600", "-3600")
    ]
    for run in fleets:
        await run.ready()
    tasks = [await client.submit("gated", gate.path) for _ in range(8)]
    arrivals = await gate.arrivals(8)
    for run in fleets:
        await run.events("lease.beat", 4, renewed=4)  # more than a lease
    for arrival in arrivals:
        arrival.let_go()
    for task in tasks:
        done = await client.wait(task.id)
        assert (done.status, done.attempt) == ("succeeded", 1)
    assert gate.waiting == 0
    for run in fleets:
        assert run.count("lease.recovered") == run.count("lease.lost") == 0
        assert await run.stop() == 0


MONOTONIC = {"FAKETIME_DONT_FAKE_MONOTONIC": "1"}
