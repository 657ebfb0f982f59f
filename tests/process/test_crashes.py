"""Sudden deaths: of a worker, of the keeper, of the supervisor. What they held is nobody's loss."""

from __future__ import annotations

import asyncio
import os
import select
import signal
from pathlib import Path

import pytest

from tests.process.support import children, descriptors

pytestmark = pytest.mark.sqlite

FLEET = """
app = "gates:registry"
lease = "5s"
drain_timeout = "2s"
retry_backoff = "100ms"
[queues.default]
processes = 2
concurrency = 20
"""

ONE = FLEET.replace("processes = 2", "processes = 1")


@pytest.mark.fault(row=5)
@pytest.mark.fault(row=11)
async def test_a_killed_workers_tasks_are_queued_again_at_once_and_its_siblings_keep_theirs(runs, client, gate):
    run = await runs.start(FLEET.replace("concurrency = 20", "concurrency = 100").replace("100ms", "30s"))
    await run.ready()
    for _ in range(4):
        await client.submit_many([{"name": "gated", "payload": gate.path} for _ in range(50)])
    arrivals = await gate.arrivals(200)
    victim = arrivals[0].pid
    lost = {arrival.task_id for arrival in arrivals if arrival.pid == victim}
    assert 0 < len(lost) < 200
    run.kill(victim)
    settled = await run.event("worker.settled")
    assert (settled["failed"], settled["released"], settled["suspects"]) == (0, len(lost), len(lost))
    died = await run.event("worker.died", pid=victim, signal=9)
    await run.event("worker.ready", queue="default", slot=died["slot"])
    await run.event("worker.ready", queue="default", slot=died["slot"])
    for task in await client.list(limit=1000):
        if task.id in lost:
            assert (task.status, task.attempt) == ("queued", 0)
            assert task.error["code"] == "worker_crashed"
            assert task.error["details"] == {"exit_code": None, "signal": 9, "suspect": 1}
        else:
            assert (task.status, task.attempt) == ("running", 1)
    for arrival in arrivals:
        if arrival.pid != victim:
            arrival.let_go()
    assert await run.stop() == 0
    counts = (await client.stats())["default"]
    assert (counts["succeeded"], counts["queued"]) == (200 - len(lost), len(lost))


async def test_a_crash_takes_the_programs_that_its_handlers_started_with_it(runs, client, gate):
    run = await runs.start(ONE)
    await run.ready()
    await client.submit("with_child", gate.path)
    program = await gate.arrival()
    pidfd = os.pidfd_open(program.pid)
    try:
        worker = next(event["pid"] for event in run.heard if event["event"] == "worker.ready")
        run.kill(worker)
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        assert await asyncio.to_thread(poll.poll, 10_000), "the program lives on"
    finally:
        os.close(pidfd)
    assert await run.stop() == 0


@pytest.mark.fault(row=8)
async def test_a_blocked_loop_does_not_lose_its_lease(runs, client):
    run = await runs.start(ONE.replace('"5s"', '"1s"'))
    await run.ready()
    task = await client.submit("blocking", {"seconds": 3})
    done = await client.wait(task.id)
    assert (done.result, done.attempt) == ("done", 1)
    assert run.count("lease.lost") == 0
    assert await run.stop() == 0


async def test_a_cancel_reaches_a_handler_through_the_beat(runs, client, gate):
    run = await runs.start(ONE.replace('"5s"', '"1s"'))
    await run.ready()
    task = await client.submit("until_canceled", gate.path)
    await gate.arrival()
    await client.cancel(task.id)
    assert (await client.wait(task.id)).canceled
    assert await run.stop() == 0


@pytest.mark.fault(row=25)
async def test_a_keeper_that_is_killed_again_and_again_loses_no_lease(runs, client, gate):
    run = await runs.start(FLEET.replace("concurrency = 20", "concurrency = 100"))
    await run.ready()
    for _ in range(4):
        await client.submit_many([{"name": "gated", "payload": gate.path} for _ in range(50)])
    arrivals = await gate.arrivals(200)
    await run.event("keeper.ready")
    for _ in range(10):
        keeper = next(event["pid"] for event in reversed(run.heard) if event["event"] == "keeper.ready")
        beats = run.count("lease.beat", renewed=200)
        run.kill(keeper)
        await run.event("keeper.died", pid=keeper)
        await run.event("keeper.ready")
        while run.count("lease.beat", renewed=200) == beats:
            await run.event("lease.beat")
    for arrival in arrivals:
        arrival.let_go()
    for arrival in arrivals:
        assert (await client.wait(arrival.task_id)).attempt == 1
    assert run.count("lease.lost") == 0
    assert gate.waiting == 0
    assert await run.stop() == 0


async def test_a_keeper_that_hangs_is_replaced_before_a_lease_is_lost(runs, client, gate):
    run = await runs.start(ONE)
    await run.ready()
    task = await client.submit("gated", gate.path)
    arrival = await gate.arrival()
    keeper = (await run.event("keeper.ready"))["pid"]
    await run.event("lease.beat", renewed=1)
    run.kill(keeper, signal.SIGSTOP)
    killed = await run.event("keeper.killed", pid=keeper)
    assert killed["reason"] == "it does not answer"
    await run.event("keeper.ready")
    await run.event("lease.beat", renewed=1)
    arrival.let_go()
    assert (await client.wait(task.id)).attempt == 1
    assert run.count("lease.lost") == 0
    assert await run.stop() == 0


async def test_a_worker_that_dies_while_there_is_no_keeper_is_settled_by_the_next_one(runs, client, gate):
    run = await runs.start(ONE)
    await run.ready()
    task = await client.submit("gated", gate.path)
    arrival = await gate.arrival()
    keeper = (await run.event("keeper.ready"))["pid"]
    run.kill(keeper, signal.SIGSTOP)
    run.kill(arrival.pid)
    await run.event("worker.died", pid=arrival.pid)
    run.kill(keeper)
    await run.event("worker.settled", requeued=1, failed=0, released=0)
    again = await gate.arrival()
    assert (again.task_id, again.attempt) == (task.id, 2)
    run.kill((await run.event("keeper.ready"))["pid"])
    run.kill(again.pid)
    await run.event("worker.settled", requeued=1)
    last = await gate.arrival()
    assert (last.task_id, last.attempt) == (task.id, 3)
    run.kill(last.pid)
    await run.event("worker.settled", requeued=0, failed=1)
    assert run.count("worker.settled") == 3, "a third keeper finds the first duty done"
    assert (await client.wait(task.id)).error["code"] == "worker_crashed"
    assert await run.stop() == 0


@pytest.mark.fault(row=7)
async def test_orphans_stop_claiming_and_leave_before_their_leases_can_lapse(runs, client, gate):
    run = await runs.start(FLEET)
    await run.ready()
    held = await client.submit("gated", gate.path)
    finished = await client.submit("gated", gate.path)
    arrivals = {arrival.task_id: arrival for arrival in await gate.arrivals(2)}
    pids = children(run.pid)
    run.send(signal.SIGKILL)
    assert await run.exit_code() == -signal.SIGKILL
    await client.submit("gated", gate.path)
    arrivals[finished.id].let_go()
    assert (await client.wait(finished.id)).succeeded
    for pid in pids:
        await run.child_gone(pid)
    task = await client.get(held.id)
    assert task.status in ("queued", "running")
    if task.status == "running":
        assert task.lease_until_ms > await database_now(client)
    else:
        assert task.attempt == 0
    assert gate.waiting == 0


async def test_an_orphan_leaves_though_a_handler_of_it_swallows_its_cancellation(runs, client, gate):
    run = await runs.start(ONE)
    await run.ready()
    await client.submit("stubborn", gate.path)
    arrival = await gate.arrival()
    run.send(signal.SIGKILL)
    assert await run.exit_code() == -signal.SIGKILL
    await run.child_gone(arrival.pid)


async def database_now(client):
    probe = await client.submit("nobody", queue="nobody")
    return probe.created_at_ms


@pytest.mark.fault(row=7)
async def test_a_new_supervisor_takes_over_while_orphans_finish_and_nothing_runs_twice(runs, client, gate):
    first = await runs.start(FLEET)
    await first.ready()
    task = await client.submit("gated", gate.path)
    arrival = await gate.arrival()
    first.send(signal.SIGKILL)
    await first.exit_code()
    second = await runs.start(FLEET)
    await second.ready()
    again = await gate.arrival()
    await arrival.cut_off()
    assert again.task_id == task.id
    again.let_go()
    assert (await client.wait(task.id)).succeeded
    assert await second.stop() == 0


async def test_a_stopped_supervisor_does_not_keep_leases_alive(runs, client, gate):
    """SIGSTOP: no orders, so the keeper renews nothing, and the workers judge by their own clocks."""
    run = await runs.start(ONE.replace('"5s"', '"1s"'))
    await run.ready()
    task = await client.submit("gated", gate.path)
    arrival = await gate.arrival()
    run.send(signal.SIGSTOP)
    await arrival.cut_off()
    run.send(signal.SIGCONT)
    again = await gate.arrival()
    assert (again.task_id, again.attempt) == (task.id, 2)
    again.let_go()
    assert (await client.wait(task.id)).succeeded
    assert await run.stop() == 0


async def test_deaths_leave_no_descriptor_behind(runs):
    run = await runs.start(FLEET.replace('"5s"', '"1s"'))
    await run.ready()
    before = len(descriptors(run.pid))
    for _ in range(2):
        for ready in await run.events("worker.ready", 2):
            run.kill(ready["pid"])
            await run.event("worker.died", pid=ready["pid"])
    await run.events("worker.ready", 2)
    await run.events("worker.settled", 4)
    await run.events("worker.forgotten", 4)
    assert len(descriptors(run.pid)) == before
    assert await run.stop() == 0


async def test_zombies_are_reaped_while_the_fleet_runs(runs):
    run = await runs.start(FLEET)
    await run.ready()
    victim = next(event["pid"] for event in run.heard if event["event"] == "worker.ready")
    run.kill(victim)
    await run.event("worker.died", pid=victim)
    assert not Path(f"/proc/{victim}").exists()
    assert await run.stop() == 0
