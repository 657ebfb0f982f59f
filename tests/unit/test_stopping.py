"""Signals of a standalone worker, and threads that end with it."""

from __future__ import annotations

import asyncio
import signal
import threading

import pytest

from cairnq.run.stopping import StopSignals
from cairnq.run.threads import Threads

INT, TERM = signal.SIGINT, signal.SIGTERM


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([(TERM, 0.0)], ["stop"]),
        ([(TERM, 0.0), (TERM, 0.1)], ["stop"]),
        ([(TERM, 0.0), (INT, 0.9)], ["stop"]),
        ([(TERM, 0.0), (TERM, 5.0)], ["stop"]),
        ([(INT, 0.0), (INT, 0.5), (INT, 1.1)], ["stop", "hurry"]),
        ([(TERM, 0.0), (INT, 2.0)], ["stop", "hurry"]),
    ],
)
def test_doubled_signals_are_one_and_a_late_interrupt_means_haste(
    history: list[tuple[signal.Signals, float]], expected: list[str]
) -> None:
    done: list[str] = []
    signals = StopSignals(stop=lambda: done.append("stop"), hurry=lambda: done.append("hurry"))
    for number, now in history:
        signals.got(number, now)
    assert done == expected


async def test_jobs_wait_for_the_threads_that_there_are_when_the_system_has_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []
    threads, done, later = Threads(3, "t", on_none=told.append), threading.Semaphore(0), asyncio.Event()
    start, left = threading.Thread.start, [0, 1]

    def scarce(thread: threading.Thread) -> None:
        if left.pop() == 0:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", scarce)
    left[:] = [0, 0, 1, 0, 0]
    for _ in range(2):
        assert not threads.is_ready(or_later=later.set)
        async with asyncio.timeout(60):
            await later.wait()
        later.clear()
    assert told == ["can't start new thread"]
    for _ in range(3):  # one gets a thread, and the others wait for it
        assert threads.is_ready(or_later=later.set)
        threads.run(done.release)
    for _ in range(3):
        assert done.acquire(timeout=60)
        threads.ended()
    threads.close()


def test_threads_are_made_when_needed_and_reused() -> None:
    threads, seen, gate = Threads(2, "t", on_none=print), set(), threading.Semaphore(0)

    def job() -> None:
        seen.add(threading.current_thread())
        gate.release()

    for _ in range(20):
        assert threads.is_ready(or_later=gate.release)
        threads.run(job)
        gate.acquire()
        threads.ended()
    assert len(seen) == 1, "one at a time needs one thread"
    assert all(thread.daemon for thread in seen), "a stuck handler must not keep the interpreter from ending"
    threads.close()
    for thread in seen:
        thread.join(60)
        assert not thread.is_alive()
