"""Threads for plain handlers: made when first needed, kept, and never waited for when the process wants to end."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable

Job = Callable[[], None]
_NEXT_TRY_S = 0.25
"""Seconds after which a system that had no thread left is asked for one again."""


class Threads:
    """Up to `most` daemon threads. (A ThreadPoolExecutor would wait for a stuck handler at the interpreter's exit.)"""

    def __init__(self, most: int, name: str, *, on_none: Callable[[str], None]) -> None:
        """`on_none(reason)` is called once when the system has no thread left, until it has one again."""
        self._most = most
        self._name = name
        self._on_none = on_none
        self._is_none_left = False
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._count = 0
        self._busy = 0

    def is_ready(self, *, or_later: Callable[[], None]) -> bool:
        """Whether there is a thread that will run one job more.

        Not where the system has none left and there is none here: then `or_later()` is called after a while.
        """
        try:
            if self._busy >= self._count and self._count < self._most:
                self._add()
        except RuntimeError as error:
            if not self._is_none_left:
                self._on_none(str(error))
            self._is_none_left = True
            asyncio.get_running_loop().call_later(_NEXT_TRY_S, or_later)
            return False
        self._is_none_left = False
        return True

    def run(self, job: Job) -> None:
        """Called on the loop's thread alone, once `is_ready`. `job` reports by itself and does not raise."""
        self._busy += 1
        self._jobs.put(job)

    def ended(self) -> None:
        """On the loop's thread: a job that was run has reported its end, and its thread is free again."""
        self._busy -= 1

    def close(self) -> None:
        """Idle threads end now, a busy one after its job."""
        for _ in range(self._count):
            self._jobs.put(None)

    def _add(self) -> None:
        thread = threading.Thread(target=self._work, name=f"{self._name}-{self._count + 1}", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            if self._count == 0:
                raise
        else:
            self._count += 1

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            del job  # with the payload in it, which would stay in memory for as long as this thread has nothing to do
