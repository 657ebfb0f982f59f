"""Payload bytes on the whole host: workers stop claiming at the ceiling, and go on below it."""

from __future__ import annotations

import signal

import pytest

pytestmark = pytest.mark.sqlite

FLEET = """
app = "gates:registry"
drain_timeout = "5s"
[queues.default]
processes = 3
concurrency = 10
max_in_flight_bytes = "250KiB"
"""
HEAVY = 100_000
"""Bytes of a payload: two may run beside each other, and a third one is claimed."""

MOST = 5
"""Each of the other two workers may have claimed at the same moment as the third one was."""

HOST = """
app = "gates:registry"
lease = "3s"
drain_timeout = "5s"
max_in_flight_bytes = "150KiB"
[queues.x]
[queues.y]
"""


def heavy(gate, size=HEAVY):
    return {"gate": gate.path, "ballast": "x" * size}


async def status(run):
    run.send(signal.SIGUSR1)
    return await run.event("supervisor.status")


async def test_three_workers_together_hold_no_more_than_the_queue_may(runs, client, gate):
    run = await runs.start(FLEET)
    await run.ready()
    tasks = await client.submit_many([{"name": "weighty", "payload": heavy(gate)} for _ in range(12)])
    held = await gate.arrivals(2)
    for _ in tasks[2:]:
        [queue] = (await status(run))["queues"]
        assert queue["max_in_flight_bytes"] == 250 << 10
        assert 2 * HEAVY <= queue["in_flight_bytes"] <= MOST * (HEAVY + 200)
        assert len(held) + gate.waiting < MOST
        held.pop(0).let_go()
        held.append(await gate.arrival())
    for arrival in held:
        arrival.let_go()
    for task in tasks:
        assert (await client.wait(task.id)).attempt == 1
    assert await run.stop() == 0


async def test_a_task_beyond_the_ceiling_runs_alone_and_is_told_of(runs, client, gate):
    run = await runs.start(FLEET)
    await run.ready()
    small = [await client.submit("weighty", heavy(gate, 10), priority=2) for _ in range(2)]
    beside = await gate.arrivals(2)
    giant = await client.submit("weighty", heavy(gate, 1_000_000), priority=1)
    while (await status(run))["queues"][0]["in_flight_bytes"] < 1_000_000:
        pass
    after = [await client.submit("weighty", heavy(gate, 10)) for _ in range(4)]
    for arrival in beside:
        arrival.let_go()
    alone, left = await gate.arrival(), len(after)
    while alone.task_id != giant.id:  # of a claim that was under way when the giant's came back
        alone.let_go()
        alone, left = await gate.arrival(), left - 1
    told = await run.event("task.oversized", task_id=giant.id)
    assert (told["bytes"] > 1_000_000, told["limit_bytes"]) == (True, 250 << 10)
    await status(run)
    assert gate.waiting == 0
    alone.let_go()
    for _ in range(left):
        (await gate.arrival()).let_go()
    for task in [*small, giant, *after]:
        assert (await client.wait(task.id)).attempt == 1
    assert await run.stop() == 0


async def test_the_host_has_a_ceiling_too_and_what_a_killed_worker_held_is_room_for_others(runs, client, gate):
    run = await runs.start(HOST)
    await run.ready()
    first = await client.submit("weighty", heavy(gate, 2 * HEAVY), queue="x")
    giant = await gate.arrival()
    assert (await status(run))["supervisor"]["max_in_flight_bytes"] == 150 << 10
    other = await client.submit("weighty", heavy(gate), queue="y")
    for _ in range(20):  # turns of the supervisor, each of which would have let the wake through
        await status(run)
        assert gate.waiting == 0
    run.kill(giant.pid)
    arrival = await gate.arrival()
    assert arrival.task_id == other.id
    arrival.let_go()
    again = await gate.arrival()
    assert (again.task_id, again.attempt) == (first.id, 2)
    again.let_go()
    for task in (first, other):
        assert (await client.wait(task.id)).succeeded
    assert await run.stop() == 0
