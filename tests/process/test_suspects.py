"""Who was there when a worker died: nobody loses an attempt but for dying alone, and who saw two deaths runs alone."""

from __future__ import annotations

import signal

import pytest

pytestmark = pytest.mark.sqlite

ONE = """
app = "gates:registry"
lease = "5s"
drain_timeout = "2s"
retry_backoff = "100ms"
[queues.default]
processes = 1
concurrency = 20
"""


@pytest.mark.fault(row=12)
async def test_a_poison_task_ends_failed_and_costs_the_good_ones_beside_it_nothing(runs, client):
    run = await runs.start(ONE)
    await run.ready()
    handlers = ("echo", "unhurried")
    items = [{"name": handlers[number % 2], "payload": number} for number in range(100)]
    items.insert(50, {"name": "poison"})
    tasks = await client.submit_many(items)
    poison, good = tasks[50], tasks[:50] + tasks[51:]
    ended = await client.wait(poison.id)
    assert (ended.status, ended.attempt, ended.error["code"]) == ("failed", 3, "worker_crashed")
    assert "SIGKILL" in ended.error["message"]
    for task in good:
        done = await client.wait(task.id)
        assert (done.status, done.attempt) == ("succeeded", 1)
    assert 3 <= run.count("worker.died", signal=9) <= 3 + 2
    assert run.count("worker.flapping") == 0
    assert await run.stop() == 0


async def test_a_poison_task_among_short_ones_makes_suspects_of_none_that_had_returned(runs, client):
    """Many of them wait for their settlement when it strikes, and it is the only one that runs."""
    run = await runs.start(ONE.replace("concurrency = 20", "concurrency = 1"))
    await run.ready()
    items = [{"name": "echo", "payload": number} for number in range(300)]
    items.insert(150, {"name": "poison"})
    tasks = await client.submit_many(items)
    for task in tasks:
        done = await client.wait(task.id, timeout_ms=60_000)
        assert (done.status, done.attempt) == (("failed", 3) if task.name == "poison" else ("succeeded", 1))
    assert [event["suspects"] for event in run.heard if event["event"] == "worker.settled"] == [0, 0, 0]
    assert await run.stop() == 0


async def test_suspects_do_not_wait_ever_longer_for_the_process_that_the_one_before_has_killed(runs, client, gate):
    """Each of its deaths has spent an attempt, so that they come to an end by themselves."""
    run = await runs.start(ONE)
    await run.ready()
    await client.submit_many([{"name": "gated", "payload": gate.path} for _ in range(3)])
    for _ in range(2):
        (victim,) = {arrival.pid for arrival in await gate.arrivals(3)}
        run.kill(victim)
    for _ in range(4):
        run.kill((await gate.arrival()).pid)
    pauses = [(await run.event("worker.died", slot="s0"))["respawn_in_s"] for _ in range(4)]
    assert max(pauses) <= 1.0
    assert await run.stop() == 0


async def test_a_full_worker_that_is_killed_twice_loses_nothing_and_its_tasks_run_alone(runs, client, gate):
    """As the kernel does it out of memory. The usual workers go on meanwhile."""
    run = await runs.start(ONE)
    await run.ready()
    tasks = await client.submit_many([{"name": "gated", "payload": gate.path} for _ in range(3)])
    for _ in range(2):
        arrivals = await gate.arrivals(3)
        assert {arrival.attempt for arrival in arrivals} == {1}
        (victim,) = {arrival.pid for arrival in arrivals}
        run.kill(victim)
    run.send(signal.SIGTTIN)
    alone = await gate.arrivals(2)
    assert len({arrival.pid for arrival in alone}) == 2, "as many at a time as the queue has processes"
    assert await client.call("echo", 1) == 1
    usual = {event["pid"] for event in run.heard if event["event"] == "worker.ready" and event["slot"] in (0, 1)}
    assert not usual & {arrival.pid for arrival in alone}
    alone[0].let_go()
    last = await gate.arrival()
    assert last.pid == alone[0].pid
    for arrival in (alone[1], last):
        arrival.let_go()
    for task in tasks:
        done = await client.wait(task.id)
        assert (done.status, done.attempt) == ("succeeded", 1)
    await run.event("worker.exited", slot="s0")
    await run.event("worker.exited", slot="s1")
    assert await run.stop() == 0
