"""The unit under a real systemd: start, status line, reload, watchdog, and a stop that takes the drain's time."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cairnq import CairnQ
from tests.deploy.test_systemd import service
from tests.support import service_manager
from tests.support.service_manager import ServiceManager

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(service_manager.missing() is not None, reason=str(service_manager.missing())),
]
BEHAVIOUR = ("Type", "NotifyAccess", "ExecReload", "KillMode", "OOMPolicy", "Restart", "RestartPreventExitStatus")
"""Keys of the unit that are kept as they are. Users, hardening and credentials are not for a systemd in user mode."""

APP = """
import cairnq

registry = cairnq.Registry()

@registry.task
def wait_for(ctx, path):
    with open(path) as gate:
        return gate.read()
"""


@pytest.fixture
def manager():
    manager = ServiceManager()
    yield manager
    manager.close()


@pytest.fixture
def install(manager, database):
    """`install(WatchdogSec="2s")`: the unit with these keys, as `cairnq.service`."""

    def install(**keys):
        (manager.home / "tasks.py").write_text(APP)
        (manager.home / "cairnq.toml").write_text('app = "tasks:registry"\ndrain_timeout = "20s"\nlease = "5s"\n')
        unit = service("cairnq.service")
        command = f"{sys.executable} -m cairnq_supervisor run -c {manager.home}/cairnq.toml"
        lines = [
            "[Service]",
            f"Environment=CAIRNQ_DSN={database} RUNTIME_DIRECTORY={manager.home}",
            f"StandardError=append:{manager.home}/events",
            f"ExecStart={command} --log json",
            *(f"{key}={unit[key]}" for key in BEHAVIOUR),
            *(f"{key}={value}" for key, value in keys.items()),
        ]
        (manager.units / "cairnq.service").write_text("\n".join(lines) + "\n")
        assert manager.systemctl("daemon-reload").returncode == 0

    return install


@pytest.fixture
def bystander():
    """A process at the root of every hierarchy of cgroups, as a machine without a systemd of its own has them all."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        for hierarchy in service_manager.hierarchies():
            (hierarchy / "cgroup.procs").write_text(str(process.pid))
        yield process
        process.stdin.close()


def test_a_systemd_of_the_test_moves_nobody_and_leaves_no_cgroup(bystander):
    def scopes():
        return [each for each in service_manager.hierarchies() if (each / "init.scope").exists()]

    def places():
        return [Path(f"/proc/{pid}/cgroup").read_text() for pid in (bystander.pid, os.getpid())]

    before = scopes(), places()
    manager = ServiceManager()
    try:
        assert (scopes(), places()) == before
    finally:
        manager.close()
    assert not [each for each in service_manager.hierarchies() if (each / manager.home.name).exists()]


def until(look):
    """What `look()` says once it says something. The hang limit ends a wait that does not end."""
    while not (found := look()):
        continue
    return found


def events(manager, name):
    return [line for line in (manager.home / "events").read_text().splitlines() if f'"event": "{name}"' in line]


def test_a_start_ends_when_every_worker_is_ready_and_the_status_line_says_so(manager, install):
    install()
    assert manager.systemctl("start", "cairnq").returncode == 0
    assert events(manager, "supervisor.running")
    active, status = manager.show("cairnq", "ActiveState", "StatusText")
    assert (active, status) == ("active", "running: 1 of 1 workers ready on 1 queue")
    assert manager.systemctl("stop", "cairnq").returncode == 0
    assert manager.show("cairnq", "ActiveState", "Result") == ["inactive", "success"]


def test_a_configuration_that_cannot_work_is_not_tried_again(manager, install):
    install(RestartSec="100ms")
    (manager.home / "tasks.py").write_text("import nothing_of_this_name\n")
    assert manager.systemctl("start", "cairnq").returncode != 0
    assert manager.show("cairnq", "ExecMainStatus", "NRestarts", "ActiveState") == ["78", "0", "failed"]


def test_a_reload_replaces_the_workers_and_not_the_supervisor(manager, install):
    install()
    assert manager.systemctl("start", "cairnq").returncode == 0
    (before,) = manager.show("cairnq", "MainPID")
    assert manager.systemctl("reload", "cairnq").returncode == 0
    until(lambda: events(manager, "reload.finished"))
    assert manager.show("cairnq", "MainPID", "ActiveState") == [before, "active"]


def test_a_supervisor_that_does_not_turn_is_ended_by_the_watchdog_and_started_again(manager, install):
    install(WatchdogSec="2s", RestartSec="100ms", TimeoutAbortSec="2s")
    assert manager.systemctl("start", "cairnq").returncode == 0
    (pid,) = manager.show("cairnq", "MainPID")
    os.kill(int(pid), signal.SIGSTOP)
    until(lambda: manager.show("cairnq", "NRestarts", "ActiveState") == ["1", "active"])
    assert manager.show("cairnq", "MainPID") != [pid]


def test_a_stop_takes_the_time_that_the_drain_needs(manager, install, database):
    install(TimeoutStopSec="2s")
    gate = manager.home / "gate"
    os.mkfifo(gate)
    assert manager.systemctl("start", "cairnq").returncode == 0
    task = asyncio.run(submit(database, str(gate)))
    writer = os.open(gate, os.O_WRONLY)  # returns once the handler has opened its end
    began = time.monotonic()
    with subprocess.Popen(manager.command("stop", "cairnq"), env=dict(os.environ)) as stopping:
        until(lambda: events(manager, "drain.started"))
        time.sleep(3.0)  # sleep: longer than TimeoutStopSec, and systemd must not have lost its patience
        os.write(writer, b"done")
        os.close(writer)
        assert stopping.wait() == 0
    assert time.monotonic() - began > 2.0
    assert manager.show("cairnq", "Result") == ["success"]
    assert asyncio.run(result(database, task)) == "done"


async def submit(database, gate):
    async with CairnQ.postgres(database) as client:
        return (await client.submit("wait_for", gate)).id


async def result(database, task):
    async with CairnQ.postgres(database) as client:
        return (await client.get(task)).result
