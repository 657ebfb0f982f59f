"""What a host of the torture says of itself, and what of that no fault from outside excuses."""

from __future__ import annotations

import asyncio
import signal
import sys

import pytest

from cairnq_supervisor.torture.fleet import Host


@pytest.fixture
async def process():
    """Stands for a supervisor; ends with its input."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    yield process
    process.stdin.close()
    await process.wait()


@pytest.mark.parametrize(
    ("event", "wrong"),
    [
        ({"event": "worker.died", "pid": 7, "signal": int(signal.SIGKILL)}, False),
        ({"event": "worker.exited", "pid": 7, "signal": None, "code": 0}, False),
        ({"event": "worker.died", "pid": 7, "signal": int(signal.SIGSEGV)}, True),
        ({"event": "keeper.died", "pid": 7, "signal": int(signal.SIGABRT)}, True),
        ({"event": "worker.crashed", "pid": 7}, True),
    ],
)
async def test_a_process_that_crashes_by_itself_is_wrong(tmp_path, process, event, wrong):
    host = Host(3, tmp_path, {})
    host._take(event, process)
    assert [said.startswith("host 3: ") for said in host.wrongs] == [True] * wrong
    assert host.events[event["event"]] == 1


async def test_what_orphans_say_does_not_make_the_next_supervisor_begin(tmp_path, process):
    """A signal before its first line of code would end it."""
    host = Host(0, tmp_path, {})
    host._take({"event": "worker.orphaned"}, process)
    assert not host.send(signal.SIGTERM)
    assert not host._begun
    host.process = process
    host._take({"event": "supervisor.starting"}, process)
    assert host._begun
