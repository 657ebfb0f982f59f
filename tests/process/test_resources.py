"""A resource of the host: no two processes ever hold the same unit, and no unit lies idle while work waits for it."""

from __future__ import annotations

import asyncio
import signal

from cairnq_supervisor.pure.treasury import SLICE
from tests.process.support import until

FLEET = """
app = "scarce:registry"
lease = "5s"
drain_timeout = "5s"
[queues.default]
processes = 3
concurrency = 4
"""


LEASE, PATIENT = 'lease = "5s"', 'lease = "60s"'
"""An orphan gives up shortly before its lease ends, which must not be before a second supervisor is there."""


async def test_one_unit_serves_three_processes_one_call_at_a_time(runs, client, gate):
    run = await runs.start(FLEET)
    await run.ready()
    tasks = [await client.submit("train", gate.path) for _ in range(5)]
    for _ in tasks:
        arrival = await gate.arrival()
        assert await client.call("echo", 1) == 1
        assert gate.waiting == 0
        arrival.let_go()
    for task in tasks:
        assert (await client.wait(task.id)).attempt == 1
    assert await run.stop() == 0


async def test_what_a_killed_worker_held_goes_to_another(runs, client, gate):
    run = await runs.start(FLEET)
    await run.ready()
    tasks = [await client.submit("train", gate.path) for _ in range(2)]
    first = await gate.arrival()
    run.kill(first.pid)
    second = await gate.arrival()
    assert second.pid != first.pid
    second.let_go()
    (await gate.arrival()).let_go()
    for task in tasks:
        assert (await client.wait(task.id)).succeeded
    assert await run.stop() == 0


async def test_as_many_calls_as_there_are_units_run_on_the_whole_host(runs, client, gate):
    run = await runs.start(FLEET + "[resources]\ngpu = 3\n")
    await run.ready()
    for _ in range(4):
        await client.submit("train", gate.path)
    arrivals = await gate.arrivals(3)
    assert await client.call("echo", 1) == 1
    assert gate.waiting == 0
    for arrival in arrivals:
        arrival.let_go()
    (await gate.arrival()).let_go()
    run.send(signal.SIGUSR1)
    assert (await run.event("supervisor.status"))["resources"] == {"gpu": {"capacity": 3, "held": 3}}
    assert await run.stop() == 0


async def test_queues_that_share_the_unit_take_turns(runs, client, gate):
    run = await runs.start('app = "scarce:registry"\n[queues.x]\n[queues.y]\n')
    await run.ready()
    queue_of = {(await client.submit("train", gate.path, queue=queue)).id: queue for queue in "xxxxyyyy"}
    turns = []
    for _ in range(8):
        arrival = await gate.arrival()
        turns.append(queue_of[arrival.task_id])
        assert gate.waiting == 0
        await run_for_a_slice(turns, arrival)
    assert sorted(turns) == list("xxxxyyyy")
    assert turns[0] != turns[1]
    assert await run.stop() == 0


async def run_for_a_slice(turns, arrival):
    """The first call of a queue outlasts its slice, so that the other queue is served before the first is empty."""
    if turns.count(turns[-1]) == 1:
        await asyncio.sleep(SLICE + 6)  # sleep: a slice, and the keeper's next sample
    arrival.let_go()


async def test_a_unit_is_not_handed_out_while_an_orphan_works_with_it(runs, client, gate):
    first = await runs.start(FLEET.replace(LEASE, PATIENT))
    await first.ready()
    for _ in range(2):
        await client.submit("train", gate.path)
    arrival = await gate.arrival()
    first.send(signal.SIGKILL)
    await first.exit_code()
    second = await runs.start(first.config)
    await second.ready()
    assert await client.call("echo", 1) == 1
    assert gate.waiting == 0
    arrival.let_go()
    (await gate.arrival()).let_go()
    assert await second.stop() == 0


async def test_a_reload_hands_the_unit_on(runs, client, gate):
    run = await runs.start(FLEET)
    await run.ready()
    await client.submit("train", gate.path)
    arrival = await gate.arrival()
    run.send(signal.SIGHUP)
    await run.event("reload.started")
    arrival.let_go()
    await run.event("reload.finished")
    await client.submit("train", gate.path)
    (await gate.arrival()).let_go()
    assert run.count("worker.died") == 0
    assert await run.stop() == 0


async def test_nothing_of_the_units_is_left_in_the_folder(runs, client, gate, tmp_path):
    run = await runs.start(FLEET)
    await run.ready()
    await until(lambda: bool(list(tmp_path.glob("*.unit"))))
    assert await run.stop() == 0
    assert not list(tmp_path.glob("*.unit"))
