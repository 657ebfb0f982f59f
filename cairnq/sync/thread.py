"""One event loop on a thread of its own, for all blocking clients of a process. A fork leaves it to the parent."""

from __future__ import annotations

import asyncio
import atexit
import os
import queue
import threading
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Generic, TypeVar

from cairnq.pure.errors import CairnQError, StoreClosed

T = TypeVar("T")

Close = Callable[[], Coroutine[Any, Any, None]]

EXIT_PATIENCE_S = 2.0
"""How long the end of the process may wait for connections to be closed in order."""

SIGNAL_LATENCY_S = 0.5
"""A signal that comes in the instant before a thread goes to sleep does not wake it: how long it may go unnoticed."""


class _Errand(Generic[T]):
    """A coroutine that one thread runs and another waits for.

    They share no lock that Python code takes: an exception in the waiting thread, such as Ctrl-C, may come in the
    middle of taking one, and would leave it taken for ever.
    """

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._task: asyncio.Task[T] | None = None
        self._done: queue.SimpleQueue[asyncio.Task[T]] = queue.SimpleQueue()

    def begin(self) -> None:
        """On the loop."""
        self._task = asyncio.get_running_loop().create_task(self._work)
        self._task.add_done_callback(self._done.put)

    def give_up(self) -> None:
        """On the loop."""
        if self._task is None:
            self._work.close()
        else:
            self._task.cancel()

    def outcome(self) -> T:
        """On the thread that waits."""
        while True:
            try:
                task = self._done.get(timeout=SIGNAL_LATENCY_S)
            except queue.Empty:
                continue
            return task.result()


class LoopThread:
    """Runs coroutines for threads that wait for them. Made by `here`, ends with the process."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="cairnq sync", daemon=True)
        self._open: set[Close] = set()
        self._ended = False
        self._thread.start()
        atexit.register(self._end)

    @property
    def is_here(self) -> bool:
        """Whether it runs in this process; in a forked child it does not."""
        return self._pid == os.getpid()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` returns or raises. An exception in the waiting thread, such as Ctrl-C, cancels it."""
        if self._ended or threading.current_thread() is self._thread:
            work.close()
            if self._ended:
                raise StoreClosed("the process is ending, and its database connections are closed")
            raise CairnQError("a callback of watch() runs on the client's own thread, and cannot wait for the client")
        errand = _Errand(work)
        try:
            self._loop.call_soon_threadsafe(errand.begin)
            return errand.outcome()
        except BaseException:
            self._loop.call_soon_threadsafe(errand.give_up)
            raise

    def opened(self, close: Close) -> None:
        """`close` is to be run before the process ends, unless it is `closed` before."""
        self._open.add(close)

    def closed(self, close: Close) -> None:
        self._open.discard(close)

    def _end(self) -> None:
        if not self.is_here:
            return
        self._ended = True
        closing = asyncio.run_coroutine_threadsafe(_all(self._open), self._loop)
        try:
            closing.result(EXIT_PATIENCE_S)
        except TimeoutError:
            return  # the server finds out by itself
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(EXIT_PATIENCE_S)


async def _all(closes: Iterable[Close]) -> None:
    await asyncio.gather(*(close() for close in closes), return_exceptions=True)


_lock = threading.Lock()
_here: LoopThread | None = None
_left_to_the_parent: list[LoopThread] = []
"""Never touched and never collected, with the clients that each has open: their descriptors are the parent's too."""


def here() -> LoopThread:
    """This process's, made at the first call."""
    global _here  # noqa: PLW0603 - it is one per process
    with _lock:
        if _here is None:
            _here = LoopThread()
        return _here


def lock() -> threading.Lock:
    """For what clients do at most once in a process."""
    return _lock


def _after_in_child() -> None:
    global _here, _lock  # noqa: PLW0603
    _lock = threading.Lock()  # another thread of the parent may have held it
    if _here is not None:
        _left_to_the_parent.append(_here)
        _here = None


os.register_at_fork(after_in_child=_after_in_child)
