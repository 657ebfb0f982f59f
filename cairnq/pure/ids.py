"""Identifiers: a prefix and a ULID, which sorts by the time it was made."""

from __future__ import annotations

import os
import threading
import time

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [first + second for first in ALPHABET for second in ALPHABET]
_TIME_CHARS = 10
_RANDOM_CHARS = 16


def _crockford(value: int, length: int) -> str:
    """The last `length` digits, an even number: ten bits at a time, for ids are made by the thousand."""
    return "".join([_PAIRS[value >> shift & 1023] for shift in range(5 * length - 10, -10, -10)])


class UlidGenerator:
    """Makes ULIDs that rise within a process, also within one millisecond and under a clock that steps back.

    Each call with the time of the call before (or an earlier one) adds one to the random part instead
    of drawing it anew, so that ids made in a loop keep the order in which they were made; all but the last two
    characters are then those of the one before, 1,023 times in 1,024.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_ms = -1
        self._last_time = ""
        self._last_random = 0
        self._head = ""
        """The last ULID less its last two characters."""

    def next(self, now_ms: int) -> str:
        with self._lock:
            if now_ms > self._last_ms:
                self._last_ms = now_ms
                self._last_time = _crockford(now_ms, _TIME_CHARS)
                # The top bit stays clear, so that 2^79 increments fit into one millisecond.
                self._last_random = int.from_bytes(os.urandom(10), "big") >> 1
                carried = True
            else:
                self._last_random += 1
                carried = self._last_random & 1023 == 0
            if carried:
                self._head = self._last_time + _crockford(self._last_random >> 10, _RANDOM_CHARS - 2)
            return self._head + _PAIRS[self._last_random & 1023]


_generator = UlidGenerator()


def _start_anew_in_child() -> None:
    """A forked child must not repeat its parent's sequence, nor inherit a lock that a thread held."""
    global _generator  # noqa: PLW0603 - one sequence for the process is the point
    _generator = UlidGenerator()


os.register_at_fork(after_in_child=_start_anew_in_child)


def new_task_id() -> str:
    """`task_` and 26 characters; later calls in this process sort after earlier ones."""
    return "task_" + _generator.next(time.time_ns() // 1_000_000)


def new_worker_id() -> str:
    """`worker_` and 26 characters. One for each incarnation of a worker; never carried across a fork."""
    return "worker_" + _generator.next(time.time_ns() // 1_000_000)


def first_task_id_at(now_ms: int) -> str:
    """The smallest task id whose time is `now_ms` (epoch milliseconds): a bound for walks in id order."""
    return "task_" + _crockford(max(0, now_ms), _TIME_CHARS) + ALPHABET[0] * _RANDOM_CHARS
