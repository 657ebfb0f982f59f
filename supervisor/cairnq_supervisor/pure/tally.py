"""What became of tasks, counted by name: a worker counts, the supervisor keeps the sum over all incarnations."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
"""Seconds: the upper ends of the buckets, from a look-up in memory to half an hour of computing."""


class Fate(StrEnum):
    """What became of one attempt, as its worker knows it."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"  # for good
    RETRIED = "retried"  # failed, and queued again
    RELEASED = "released"  # given back, attempt not spent
    CANCELED = "canceled"
    LOST = "lost"  # the lease was gone


@dataclass(slots=True)
class Histogram:
    """`counts` by bucket of `BOUNDS`, and one for what is longer. `total`: seconds, summed."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect.bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds

    def add(self, other: Histogram) -> None:
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.total += other.total


@dataclass(slots=True)
class NameTally:
    """Of the tasks of one name. `wait`: from due to claimed; `duration`: from the handler's start to its outcome."""

    claimed: int = 0
    fates: dict[Fate, int] = field(default_factory=dict)
    wait: Histogram = field(default_factory=Histogram)
    duration: Histogram = field(default_factory=Histogram)

    def add(self, other: NameTally) -> None:
        self.claimed += other.claimed
        for fate, count in other.fates.items():
            self.fates[fate] = self.fates.get(fate, 0) + count
        self.wait.add(other.wait)
        self.duration.add(other.duration)


class Tally:
    """By name. Only ever grows."""

    def __init__(self) -> None:
        self.names: dict[str, NameTally] = {}

    def claimed(self, name: str, *, waited: float) -> None:
        """`waited` seconds, by the database's clock alone; below zero where it was set back."""
        of_name = self.names.get(name) or self._of(name)
        of_name.claimed += 1
        of_name.wait.observe(max(0.0, waited))

    def ended(self, name: str, fate: Fate, *, took: float | None) -> None:
        """`took` seconds; None: its handler never started."""
        of_name = self.names.get(name) or self._of(name)
        of_name.fates[fate] = of_name.fates.get(fate, 0) + 1
        if took is not None:
            of_name.duration.observe(took)

    def add(self, other: Tally) -> None:
        for name, theirs in other.names.items():
            self._of(name).add(theirs)

    def _of(self, name: str) -> NameTally:
        """Not by `setdefault`, which would make one for every task only to throw it away."""
        found = self.names.get(name)
        if found is None:
            found = self.names[name] = NameTally()
        return found

    def encoded(self) -> dict[str, Any]:
        """As JSON values, for a message."""
        return {
            name: [
                of_name.claimed,
                dict(of_name.fates),
                [of_name.wait.counts, of_name.wait.total],
                [of_name.duration.counts, of_name.duration.total],
            ]
            for name, of_name in self.names.items()
        }

    @classmethod
    def decoded(cls, names: Mapping[str, Any]) -> Self:
        """What `encoded` gave. Raises `ValueError`, `TypeError` or `KeyError` for anything else."""
        tally = cls()
        for name, (claimed, fates, wait, duration) in names.items():
            tally.names[name] = NameTally(
                int(claimed),
                {Fate(fate): int(count) for fate, count in fates.items()},
                _histogram(*wait),
                _histogram(*duration),
            )
        return tally


def _histogram(counts: list[int], total: float) -> Histogram:
    if len(counts) != len(BOUNDS) + 1:
        raise ValueError(f"a histogram has {len(BOUNDS) + 1} buckets, not {len(counts)}")
    return Histogram([int(count) for count in counts], float(total))
