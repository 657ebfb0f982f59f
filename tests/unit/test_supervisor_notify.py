"""systemd's datagrams, received by a socket of our own."""

from __future__ import annotations

import os
import socket

import pytest

from cairnq_supervisor.system.notify import Notifier


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    """A bound socket, and what NOTIFY_SOCKET says."""
    name = str(tmp_path / "notify") if request.param == "path" else f"@cairnq-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(name.replace("@", "\0"))
        yield sock, name


def test_a_manager_is_told_in_one_datagram(manager):
    sock, name = manager
    environment = {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid()), "PATH": "x"}
    notifier = Notifier(environment)
    assert notifier.watchdog == 30.0
    assert environment == {"PATH": "x"}
    notifier.tell(READY=1, STATUS="2 queues,\n4 workers")
    assert sock.recv(4096) == b"READY=1\nSTATUS=2 queues,\\n4 workers"
    notifier.tell(RELOADING=1, MONOTONIC_USEC=17)
    assert sock.recv(4096) == b"RELOADING=1\nMONOTONIC_USEC=17"


def test_without_a_manager_nothing_happens():
    notifier = Notifier({})
    assert notifier.watchdog is None
    notifier.tell(READY=1)


def test_a_watchdog_of_another_process_is_not_ours(manager):
    _, name = manager
    assert Notifier({"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1"}).watchdog is None


def test_a_manager_that_has_gone_or_does_not_read_is_not_waited_for(manager):
    sock, name = manager
    notifier = Notifier({"NOTIFY_SOCKET": name})
    for _ in range(10_000):  # far past what the socket's buffer holds
        notifier.tell(STATUS="x" * 1000)
    sock.close()
    notifier.tell(STOPPING=1)
