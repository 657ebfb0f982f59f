"""Whom a wake goes to, by what the workers' own gauges say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from cairnq_supervisor.pure import evidence

SILENT_AFTER = 2.0
"""Seconds, two pulses of a worker's loop, without a turn of it after which it will not hear its bell soon."""

Worker = TypeVar("Worker")


class Gauges(Protocol):
    """Those of a lease table."""

    @property
    def is_claiming(self) -> int: ...
    @property
    def in_flight_calls(self) -> int: ...
    @property
    def concurrency(self) -> int: ...
    @property
    def shut(self) -> int: ...
    @property
    def units(self) -> int: ...
    @property
    def last_progress(self) -> float: ...
    @property
    def is_kept(self) -> bool: ...


def room(gauges: Gauges) -> int:
    """Calls that the worker could still take: none while it waits for a beat."""
    return gauges.concurrency - gauges.in_flight_calls if gauges.is_claiming and gauges.is_kept else 0


def is_silent(gauges: Gauges, now: float) -> bool:
    """Whether its loop does not turn: whatever room it shows, it takes nothing now."""
    return evidence.silence(now=now, last_progress=gauges.last_progress) > SILENT_AFTER


def waits_for_a_beat(gauges: Gauges, now: float) -> bool:
    """Whether a lease of its ran out unrenewed, and its loop turns: who is starting, hangs or is dead does not wait."""
    return not gauges.is_kept and not is_silent(gauges, now)


def best(workers: Iterable[Worker], gauges: Callable[[Worker], Gauges], now: float) -> Worker | None:
    """The idlest of those that have room: its claim passes the wake on if it comes back full.

    One whose loop is silent only where nobody else has any: it shows few calls for as long as it hangs. One that
    has room for every name before one that has used up a name's own concurrency, and of the equally idle one that
    has units of resources: the others may have room and no task that they could run.
    """

    def rank(worker: Worker) -> tuple[bool, int, int, int]:
        shown = gauges(worker)
        return not is_silent(shown, now), -shown.shut, room(shown), shown.units

    return max((worker for worker in workers if room(gauges(worker)) > 0), key=rank, default=None)
