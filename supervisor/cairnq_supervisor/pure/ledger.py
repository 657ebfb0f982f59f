"""What each worker of the host holds and runs in payload bytes: a row each, in memory that all of them share.

A worker writes its own row and reads the sums of all: that takes microseconds and asks nobody. The supervisor hands
rows out, and clears those of the dead. There are no locks: every field is one aligned 8-byte store with one writer
(but "waits", which the supervisor clears before it tells the worker to look again), and a sum that is a moment old lets
each worker overshoot by one claim.
"""

from __future__ import annotations

from typing import Final, NamedTuple

ROWS: Final = 8192
"""Of two generations of all the workers that one host could carry. Untouched memory costs nothing."""

_WORD: Final = 8
_HEADER_WORDS: Final = 8
_ROW_WORDS: Final = 8
_HIGH_WATER: Final = 0
# Words of a row. A queue's number counts from 1; 0: the row is free.
_QUEUE, _HELD, _RUNNING, _WAITS = range(4)


class Place(NamedTuple):
    """A worker's row, and the number of its queue."""

    row: int
    queue: int


class Ledger:
    """Over any writable buffer of `SIZE` zeroed bytes."""

    SIZE: Final = _WORD * (_HEADER_WORDS + ROWS * _ROW_WORDS)

    def __init__(self, buffer: bytearray | memoryview) -> None:
        self._words = memoryview(buffer).cast("B")[: self.SIZE].cast("q")

    # The supervisor's side.

    def enter(self, queue: int) -> Place | None:
        """The lowest free row, for a worker of queue number `queue` (from 1); None: there is none."""
        taken = self._column(_QUEUE)
        row = next((row for row, number in enumerate(taken) if number == 0), len(taken))
        if row == ROWS:
            return None
        self._words[self._word(row, _QUEUE)] = queue
        self._words[_HIGH_WATER] = max(self._words[_HIGH_WATER], row + 1)
        return Place(row, queue)

    def clear(self, row: int) -> None:
        """Its worker is gone, and with it what it held."""
        for field in (_HELD, _RUNNING, _WAITS, _QUEUE):
            self._words[self._word(row, field)] = 0

    def waiting(self) -> list[int]:
        """Rows of workers that were refused bytes."""
        return [row for row, waits in enumerate(self._column(_WAITS)) if waits]

    # A worker's side.

    def hold(self, row: int, size: int) -> None:
        self._words[_HEADER_WORDS + row * _ROW_WORDS + _HELD] = size

    def run(self, row: int, size: int) -> None:
        self._words[_HEADER_WORDS + row * _ROW_WORDS + _RUNNING] = size

    def wait(self, row: int, *, waits: bool) -> None:
        """Whether this worker wants to hear of bytes that are freed."""
        self._words[self._word(row, _WAITS)] = int(waits)

    def held(self, queue: int | None = None) -> int:
        """By all workers of the host, or of one queue."""
        return self._sum(_HELD, queue)

    def running(self, queue: int | None = None) -> int:
        return self._sum(_RUNNING, queue)

    def others_wait(self, row: int, queue: int | None = None) -> bool:
        """Workers of the host, or of one queue (which `row` is of), that were refused bytes."""
        return self._sum(_WAITS, queue) > self._words[self._word(row, _WAITS)]

    def _sum(self, field: int, queue: int | None) -> int:
        column = self._column(field)
        if queue is None:
            return sum(column)
        return sum(size for number, size in zip(self._column(_QUEUE), column, strict=True) if number == queue)

    def _column(self, field: int) -> list[int]:
        """One field of every row that was ever in use."""
        end = _HEADER_WORDS + self._words[_HIGH_WATER] * _ROW_WORDS
        return self._words[_HEADER_WORDS + field : end : _ROW_WORDS].tolist()

    @staticmethod
    def _word(row: int, field: int) -> int:
        return _HEADER_WORDS + row * _ROW_WORDS + field
