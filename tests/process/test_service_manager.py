"""What a service manager hears of a run: its datagrams, received by a socket of the test."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket

import pytest

CONFIG = 'app = "gates:registry"\nlease = "5s"\ndrain_timeout = "5s"\n[queues.default]\nprocesses = 2\n'


class Manager:
    """The receiving end of NOTIFY_SOCKET."""

    def __init__(self, path):
        self.path = str(path)
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sock.bind(self.path)
        self._sock.setblocking(False)

    async def next(self):
        """The fields of the next datagram."""
        data = await asyncio.get_running_loop().sock_recv(self._sock, 65536)
        return dict(line.split("=", 1) for line in data.decode().splitlines())

    async def until(self, field):
        """The next datagram with this field."""
        while True:
            fields = await self.next()
            if field in fields:
                return fields

    async def meals(self, *, within):
        """How many times the watchdog was fed in so many seconds."""
        count = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while True:
                    await self.until("WATCHDOG")
                    count += 1
        return count

    def pending(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                yield self._sock.recv(65536)

    def close(self):
        self._sock.close()


@pytest.fixture
def manager(tmp_path):
    manager = Manager(tmp_path / "notify")
    yield manager
    manager.close()


async def test_ready_comes_once_every_worker_is_and_stopping_asks_for_the_drain(runs, manager, client, gate):
    run = await runs.start(CONFIG, environment={"NOTIFY_SOCKET": manager.path})
    fields = await manager.next()
    await run.ready()
    assert fields == {"READY": "1", "STATUS": "running: 2 of 2 workers ready on 1 queue"}
    assert run.count("worker.ready") == 2
    await client.submit("gated", gate.path)
    arrival = await gate.arrival()
    run.send(signal.SIGTERM)
    fields = await manager.next()
    assert fields["STOPPING"] == "1"
    assert int(fields["EXTEND_TIMEOUT_USEC"]) >= 5_000_000
    arrival.let_go()
    assert await run.exit_code() == 0
    assert list(manager.pending()) == []


@pytest.mark.parametrize(("stop", "short"), [("9s", 1), ("10s", 0), ("soon", 0), ("", 0)])
@pytest.mark.fault(row=16)
async def test_a_stop_that_is_shorter_than_the_drain_is_warned_of_at_the_start(runs, stop, short):
    run = await runs.start(CONFIG, environment={"CAIRNQ_STOP_TIMEOUT": stop})
    await run.ready()
    assert run.count("supervisor.stop-short") == short
    assert await run.stop() == 0


async def test_children_do_not_speak_to_the_manager(runs, manager, client):
    run = await runs.start(CONFIG, environment={"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "60000000"})
    await run.ready()
    task = await client.submit("environment", ["NOTIFY_SOCKET", "WATCHDOG_USEC", "PATH"])
    assert (await client.wait(task.id)).result == ["PATH"]
    assert await run.stop() == 0


async def test_the_watchdog_is_fed_while_loop_and_keeper_turn(runs, manager):
    environment = {"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "1000000"}
    run = await runs.start(CONFIG, environment=environment)
    await run.ready()
    for _ in range(3):
        await manager.until("WATCHDOG")
    keeper = (await run.event("keeper.ready"))["pid"]
    run.kill(keeper, signal.SIGSTOP)
    try:
        # What was on its way, and what the keeper's answers before it stopped are worth: at most three.
        assert await manager.meals(within=3) <= 3
    finally:
        run.kill(keeper, signal.SIGCONT)
    await manager.until("WATCHDOG")
    assert await run.stop() == 0


async def test_a_keeper_that_is_being_replaced_is_no_reason_to_starve_the_watchdog(runs, manager):
    environment = {"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "1000000"}
    run = await runs.start(CONFIG, environment=environment)
    await run.ready()
    run.kill((await run.event("keeper.ready"))["pid"])
    await run.event("keeper.died")
    for _ in range(3):
        await manager.until("WATCHDOG")
    assert await run.stop() == 0


async def test_a_stopped_supervisor_feeds_nothing(runs, manager):
    environment = {"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "400000"}
    run = await runs.start(CONFIG, environment=environment)
    await run.ready()
    await manager.until("WATCHDOG")
    os.kill(run.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, run.pid, os.WSTOPPED | os.WNOWAIT)  # noqa: ASYNC222 - it takes no time
    try:
        for _ in manager.pending():
            pass
        assert await manager.meals(within=1) == 0
    finally:
        os.kill(run.pid, signal.SIGCONT)
    assert await run.stop() == 0
