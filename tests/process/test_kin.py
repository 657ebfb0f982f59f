"""Titles, orphans of orphans, and what happens when the system refuses."""

from __future__ import annotations

import asyncio
import os
import resource
import select
import signal
from pathlib import Path

import pytest

from tests.process.support import children, until

FLEET = """
app = "gates:registry"
lease = "2s"
[queues.default]
processes = 2
concurrency = 16
"""


def title(pid):
    return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0 ")


async def titled(pid, wanted):
    """A title changes at most once a second, and tells nobody."""
    await until(lambda: title(pid) == wanted)


async def test_titles_say_what_each_process_is_doing(runs, client, gate):
    run = await runs.start(FLEET)
    await run.ready()
    await titled(run.pid, "cairnq: supervisor gates 1 queues 2 workers")
    keeper = (await run.event("keeper.ready"))["pid"]
    tasks = [await client.submit("gated", gate.path) for _ in range(32)]
    arrivals = await gate.arrivals(32)
    size = len(gate.path) + 2
    workers = {event["slot"]: event["pid"] for event in await run.events("worker.ready", 2)}
    for slot, pid in workers.items():
        await titled(pid, f"cairnq: worker default/{slot} 16/16 calls {16 * size / 1024:.1f} KiB")
    await titled(keeper, "cairnq: keeper 32 leases")
    for arrival in arrivals:
        arrival.let_go()
    for task in tasks:
        await client.wait(task.id)
    await titled(keeper, "cairnq: keeper 0 leases")
    assert await run.stop() == 0


async def test_a_program_that_outlives_its_worker_is_reaped_by_the_supervisor(runs, client, gate):
    run = await runs.start(FLEET)
    await run.ready()
    await client.submit("with_daemon", gate.path)
    daemon = await gate.arrival()
    pidfd = os.pidfd_open(daemon.pid)
    worker = int(Path(f"/proc/{daemon.pid}/stat").read_text().rpartition(")")[2].split()[1])
    run.kill(worker)
    await run.event("worker.died", pid=worker)
    await until(lambda: daemon.pid in children(run.pid))
    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    assert await asyncio.to_thread(poll.poll, 10_000)
    await until(lambda: not Path(f"/proc/{daemon.pid}").exists())
    os.close(pidfd)
    assert await run.stop() == 0


@pytest.mark.fault(row=24)
async def test_a_supervisor_without_descriptors_says_so_and_goes_on_when_there_are_some(runs, client):
    run = await runs.start(FLEET)
    await run.ready()
    victims = await run.events("worker.ready", 2)
    used = len(os.listdir(f"/proc/{run.pid}/fd"))  # noqa: PTH208
    before = resource.prlimit(run.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(run.pid, resource.RLIMIT_NOFILE, (used - 3, before[1]))
    run.kill(victims[0]["pid"])
    failed = await run.event("worker.spawn-failed", slot=victims[0]["slot"])
    assert "Too many open files" in failed["reason"]
    assert await client.call("echo", 1) == 1
    resource.prlimit(run.pid, resource.RLIMIT_NOFILE, before)
    await run.event("worker.ready", slot=victims[0]["slot"])
    assert run.count("supervisor.fault") == 0
    assert await run.stop() == 0
