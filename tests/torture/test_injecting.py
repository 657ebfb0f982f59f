"""A fault waits for somebody whom it can hurt, and counts when it has."""

from __future__ import annotations

import asyncio
import os
from collections import Counter

import pytest

from cairnq.pure.clock import boottime
from cairnq_supervisor.torture.fleet import Host, Member
from cairnq_supervisor.torture.ground_sqlite import SqliteGround
from cairnq_supervisor.torture.injecting import Injector
from cairnq_supervisor.torture.schedule import Fault, Kind

STOPS = [Fault(at=0.0, kind=Kind.WORKER_STOP, host=0.0, target=0.5, lasting=0.001 * (1 + n)) for n in range(3)]


class Sought(Host):
    """A host that says when nobody was found there several times."""

    def __init__(self, folder):
        super().__init__(0, folder, {})
        self.looks, self.sought = 0, asyncio.Event()

    def living(self, role=None):
        self.looks += 1
        if self.looks > 2 * len(STOPS):
            self.sought.set()
        return super().living(role)


@pytest.fixture
def host(tmp_path):
    return Sought(tmp_path)


@pytest.fixture
def injector(host, tmp_path):
    async def flood(target):
        raise AssertionError(target)

    return Injector(SqliteGround(tmp_path / "run.db"), [host], tmp_path, flood=flood, restart=())


@pytest.fixture
async def member():
    """A process that does nothing until its input ends."""
    process = await asyncio.create_subprocess_exec("cat", stdin=asyncio.subprocess.PIPE)
    yield Member("worker", process.pid, os.pidfd_open(process.pid))
    process.stdin.close()
    assert await process.wait() == 0


async def test_faults_that_find_nobody_happen_when_a_fleet_is_back(injector, host, member):
    working = asyncio.create_task(injector.work_through(STOPS, boottime() + 60))
    await host.sought.wait()
    assert (injector.injected, injector.missed) == (Counter(), Counter())
    host.members[member.pid] = member
    await working
    assert (injector.injected, injector.missed) == (Counter({Kind.WORKER_STOP: 3}), Counter())


async def test_a_fleet_that_is_down_is_not_ended_again_when_it_is_back(injector):
    fault = Fault(at=0.0, kind=Kind.SUPERVISOR_DRAIN, host=0.0, target=0.5, lasting=0.1)
    await injector.work_through([fault], boottime() + 60)
    assert (injector.injected, injector.missed) == (Counter(), Counter({Kind.SUPERVISOR_DRAIN: 1}))


async def test_what_found_nobody_until_the_end_is_not_counted_as_done(injector):
    await injector.work_through(STOPS, boottime() + 0.3)
    assert (injector.injected, injector.missed) == (Counter(), Counter({Kind.WORKER_STOP: 3}))
