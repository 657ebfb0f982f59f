"""Plain functions where the system has no thread left for them: they wait, and no attempt is spent."""

from __future__ import annotations

import threading

import pytest

from cairnq import CairnQ, Registry
from tests.support.gates import Recorder
from tests.support.rigs import MakeRig


class System:
    """It refuses threads while `is_short`."""

    def __init__(self) -> None:
        self.is_short = True
        self.refused = 0
        self._start = threading.Thread.start

    def start(self, thread: threading.Thread) -> None:
        if self.is_short and thread.name.startswith("cairnq-handler"):
            self.refused += 1
            raise RuntimeError("can't start new thread")
        self._start(thread)


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    system = System()

    def start(thread: threading.Thread) -> None:
        system.start(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    return system


def registry() -> Registry:
    registry = Registry()
    registry.register("plain", lambda ctx: ctx.attempt)
    return registry


async def test_a_call_waits_for_a_thread_and_no_attempt_is_spent(
    client: CairnQ, make_rig: MakeRig, events: Recorder, system: System
) -> None:
    async with make_rig(registry(), concurrency=4):
        tasks = [await client.submit("plain", max_attempts=1) for _ in range(4)]
        await events.wait("threads.exhausted")
        system.is_short = False
        for task in tasks:
            ended = await client.wait(task.id)
            assert (ended.status, ended.result) == ("succeeded", 1)
    assert system.refused >= 1
    assert len(events.all("threads.exhausted")) == 1
    assert events.all("task.failed") == []


async def test_a_drain_gives_back_what_never_had_a_thread(
    client: CairnQ, make_rig: MakeRig, events: Recorder, system: System
) -> None:
    async with make_rig(registry()) as rig:
        task = await client.submit("plain", max_attempts=1)
        await events.wait("threads.exhausted")
        await rig.engine.drain(rig.clock())
        left = await client.get(task.id)
        assert left is not None
        assert (left.status, left.attempt) == ("queued", 0)
