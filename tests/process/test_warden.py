"""Workers that hang, outrun their time, or are spent: found by evidence, ended or replaced, and nobody else pays."""

from __future__ import annotations

import os
import signal

import pytest

from cairnq_supervisor.pure.evidence import OVERRUN_GRACE

FLEET = """
app = "gates:registry"
lease = "1s"
drain_timeout = "5s"
retry_backoff = "100ms"
[queues.default]
processes = 1
concurrency = 4
"""


@pytest.mark.fault(row=8)
async def test_a_blocked_loop_is_reported_once_with_the_stack_of_the_guilty_handler(runs, client):
    run = await runs.start(FLEET)
    await run.ready()
    task = await client.submit("blocking", {"seconds": 3})
    blocked = await run.event("worker.blocked")
    assert blocked["handler"] == "blocking"
    assert "in blocking" in blocked["stack"]
    assert "cairnq_supervisor" not in blocked["stack"]
    assert blocked["level"] == "warning"
    assert (await client.wait(task.id)).attempt == 1
    assert run.count("worker.blocked") == 1
    assert await run.stop() == 0


@pytest.mark.fault(row=2)
async def test_a_loop_that_stays_blocked_past_stall_timeout_costs_its_process(runs, client):
    run = await runs.start(FLEET + 'stall_timeout = "2s"\n')
    await run.ready()
    task = await client.submit("blocking", {"seconds": 600}, max_attempts=1)
    killed = await run.event("worker.killed")
    assert "stall_timeout" in killed["reason"]
    ended = await client.wait(task.id)
    assert (ended.status, ended.error["code"]) == ("failed", "worker_crashed")
    await run.event("worker.ready")
    assert await client.call("echo", 1) == 1
    assert await run.stop() == 0


@pytest.mark.fault(row=17)
async def test_a_handler_that_blocks_the_loop_past_max_run_ends_as_a_timeout_and_its_neighbours_are_given_back(
    runs, client, gate
):
    run = await runs.start(FLEET + 'max_run = "3s"\n')
    await run.ready()
    guilty = await client.submit("blocking", {"seconds": 600}, max_attempts=1)
    await run.event("worker.blocked")
    killed = await run.event("worker.killed")
    assert "outran max_run" in killed["reason"]
    ended = await client.wait(guilty.id)
    assert (ended.status, ended.error["code"]) == ("failed", "handler_timeout")
    await run.event("worker.settled", failed=1)
    assert await run.stop() == 0


@pytest.mark.fault(row=17)
async def test_a_plain_function_that_outruns_max_run_is_ended_with_its_process_and_its_programs(runs, client, gate):
    run = await runs.start(FLEET + 'max_run = "1s"\n')
    await run.ready()
    guilty = await client.submit("gated_plain", gate.path, max_attempts=1)
    arrival = await gate.arrival()
    assert (await client.wait(guilty.id)).error["code"] == "handler_timeout"
    await run.event("task.timed_out")
    assert OVERRUN_GRACE > 1
    killed = await run.event("worker.killed", pid=arrival.pid)
    assert "does not end" in killed["reason"]
    await arrival.cut_off()
    await run.events("worker.ready", 2)
    assert await client.call("echo", 1) == 1
    assert await run.stop() == 0


async def test_max_tasks_replaces_a_worker_without_losing_a_task(runs, client):
    run = await runs.start(FLEET + "max_tasks = 20\n")
    await run.ready()
    await run.event("worker.ready")
    for _ in range(10):
        tasks = await client.submit_many([{"name": "unhurried", "payload": number} for number in range(10)])
        for task in tasks:
            assert (await client.wait(task.id)).attempt == 1
    replacing = await run.event("worker.replacing")
    assert "max_tasks (20) reached" in replacing["reason"]
    ready = await run.event("worker.ready")
    gone = await run.event("worker.exited", pid=replacing["pid"])
    assert run.heard.index(ready) < run.heard.index(gone)
    assert run.count("worker.died") == 0
    assert await run.stop() == 0


async def test_max_age_replaces_an_idle_worker(runs):
    run = await runs.start(FLEET + 'max_age = "1s"\n')
    await run.ready()
    replacing = await run.event("worker.replacing")
    assert "max_age" in replacing["reason"]
    await run.event("worker.exited", pid=replacing["pid"])
    assert await run.stop() == 0


@pytest.mark.fault(row=6)
async def test_max_rss_replaces_a_leaking_worker_one_sibling_at_a_time(runs, client):
    run = await runs.start(FLEET.replace("processes = 1", "processes = 2") + 'max_rss = "150MiB"\n')
    await run.ready()
    await run.events("worker.ready", 2)
    first = await client.submit("leaking", 200)
    replacing = await run.event("worker.replacing")
    assert "max_rss (150 MiB) passed" in replacing["reason"]
    assert (await client.wait(first.id)).succeeded
    await run.event("worker.ready")
    await run.event("worker.exited", pid=replacing["pid"])
    assert run.count("worker.replacing") == 1
    assert await run.stop() == 0


@pytest.mark.fault(row=6)
async def test_a_max_rss_below_the_boot_size_is_refused(runs):
    run = await runs.start(FLEET + 'max_rss = "10MiB"\n')
    assert await run.exit_code() == 78
    assert "max_rss" in run.log.read_text()
    assert "10.0 MiB" in run.log.read_text()


async def test_usr1_writes_a_report_and_everybodys_stacks(runs, client, gate):
    run = await runs.start(FLEET)
    await run.ready()
    await client.submit("gated_plain", gate.path)
    arrival = await gate.arrival()
    run.send(signal.SIGUSR1)
    assert (await run.event("supervisor.status"))["supervisor"]["pid"] == run.pid
    assert "in gated_plain" in (await run.event("worker.stacks", pid=arrival.pid))["stack"]
    arrival.let_go()
    assert await run.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
async def test_a_stray_signal_to_a_child_changes_nothing(runs, client, gate, number):
    run = await runs.start(FLEET)
    await run.ready()
    task = await client.submit("gated", gate.path)
    arrival = await gate.arrival()
    keeper = await run.event("keeper.ready")
    for pid in (arrival.pid, keeper["pid"]):
        os.kill(pid, number)
    arrival.let_go()
    assert (await client.wait(task.id)).attempt == 1
    assert run.count("worker.died") == run.count("keeper.died") == 0
    assert await run.stop() == 0
