"""Threads for plain handlers: made when first needed, kept, and never waited for when the process wants to end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

Job = Callable[[], None]


class Threads:
    """Up to `most` daemon threads. (A ThreadPoolExecutor would wait for a stuck handler at the interpreter's exit.)"""

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._count = 0
        self._busy = 0

    def run(self, job: Job) -> None:
        """Called on the loop's thread alone. `job` reports by itself and does not raise.

        Raises `RuntimeError` where the system has no thread left and there is none here that could run it.
        """
        if self._busy >= self._count and self._count < self._most:
            self._add()
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
