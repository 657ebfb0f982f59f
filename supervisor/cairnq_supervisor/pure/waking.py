"""Whom a wake goes to, by what the workers' own gauges say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

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


def room(gauges: Gauges) -> int:
    """Calls that the worker could still take."""
    return gauges.concurrency - gauges.in_flight_calls if gauges.is_claiming else 0


def best(workers: Iterable[Worker], gauges: Callable[[Worker], Gauges]) -> Worker | None:
    """The idlest of those that have room: its claim passes the wake on if it comes back full.

    One that has room for every name before one that has used up a name's own concurrency, and of the equally idle
    one that has units of resources: the others may have room and no task that they could run.
    """

    def rank(worker: Worker) -> tuple[int, int, int]:
        shown = gauges(worker)
        return -shown.shut, room(shown), shown.units

    return max((worker for worker in workers if room(gauges(worker)) > 0), key=rank, default=None)
