"""Keeps the ledger of payload bytes: a row for each worker, and a word to those that wait when some were freed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from errno import ENOSPC

from cairnq_supervisor.loop.worker_seat import WorkerSeat
from cairnq_supervisor.pure.ledger import Ledger, Place
from cairnq_supervisor.pure.messages import BytesFreed
from cairnq_supervisor.system import memory


class Payloads:
    """`workers()`: the seats there are now. The memory is made once, and every child inherits it."""

    def __init__(self, workers: Callable[[], Iterable[WorkerSeat]]) -> None:
        """Raises `OSError` when the system has no memory or descriptor left."""
        self._workers = workers
        self._queues: dict[str, int] = {}
        fd = memory.create("cairnq-payloads", Ledger.SIZE)
        try:
            self.ledger = Ledger(memory.Mapping(fd).view)
        finally:
            os.close(fd)

    def enter(self, queue: str) -> Place:
        """A row for a worker that is about to be forked. Raises `OSError` when all are taken."""
        place = self.ledger.enter(self._queues.setdefault(queue, len(self._queues) + 1))
        if place is None:
            raise OSError(ENOSPC, "too many workers for the ledger of payload bytes")
        return place

    def leave(self, place: Place) -> None:
        """No process uses it any more. What it held is free, and somebody may have waited for that."""
        self.ledger.clear(place.row)
        self.freed(place)

    def freed(self, by: Place) -> None:
        """Tell each that waits and whom bytes of this queue may help, once: it says so anew if it is refused anew.

        The row is cleared first, so that a refusal after that is not lost. One whose loop does not turn, or that has
        nothing to start any more, is told once and not for every task of the others.
        """
        waiting = set(self.ledger.waiting())
        for seat in self._workers():
            place = seat.place
            if place is not None and place.row in waiting and (place.queue == by.queue or seat.bound_by_host):
                self.ledger.wait(place.row, waits=False)
                seat.say(BytesFreed())
