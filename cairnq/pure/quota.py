"""How many tasks a claim may take: calls under way against the ceilings of the worker, of a name and of a resource."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Share:
    """Names that are drawn together. One with a batch, a concurrency or a resource of its own stands alone."""

    names: tuple[str, ...]
    batch: int = 1
    """Tasks of one call."""
    concurrency: int | None = None
    resource: str | None = None

    def calls_for(self, tasks: int) -> int:
        """Calls that `tasks` tasks make: a batch is never padded, so the last one may be short."""
        return -(-tasks // self.batch)


@dataclass(slots=True)
class Usage:
    """Calls that are under way, or held and about to start."""

    calls: int = 0
    by_name: Counter[str] = field(default_factory=Counter)
    by_resource: Counter[str] = field(default_factory=Counter)

    def take(self, name: str, resource: str | None = None, calls: int = 1) -> None:
        self.calls += calls
        self.by_name[name] += calls
        if resource is not None:
            self.by_resource[resource] += calls

    def give(self, name: str, resource: str | None = None) -> None:
        self.take(name, resource, -1)

    def copy(self) -> Usage:
        return Usage(self.calls, self.by_name.copy(), self.by_resource.copy())


@dataclass(frozen=True, slots=True)
class Ceilings:
    """`concurrency` counts calls over all names; `resources` calls over the names that share each."""

    concurrency: int
    resources: Mapping[str, int] = field(default_factory=dict)

    def limit(self, share: Share, usage: Usage) -> int:
        """Tasks of this share that may be claimed now; 0 when a ceiling is reached."""
        calls = self.concurrency - usage.calls
        if share.concurrency is not None:
            calls = min(calls, share.concurrency - usage.by_name[share.names[0]])
        if share.resource is not None:
            calls = min(calls, self.resources[share.resource] - usage.by_resource[share.resource])
        return max(0, calls * share.batch)


def rotated(shares: Sequence[Share], turn: int) -> list[Share]:
    """The order of the draws of claim number `turn`: each share comes first in its turn, so that none starves."""
    if not shares:
        return []
    start = turn % len(shares)
    return [*shares[start:], *shares[:start]]


def open_shares(shares: Iterable[Share], ceilings: Ceilings, usage: Usage) -> list[Share]:
    """The shares that a claim may draw from now."""
    return [share for share in shares if ceilings.limit(share, usage) > 0]


class ByteCeiling(NamedTuple):
    """Payload bytes that may be in memory, that are, and that are with handlers which run."""

    most: int
    held: int
    running: int


class PayloadBudget:
    """Bounds resident payload bytes. Sizes are known only after a claim, which is sized by what payloads were like."""

    _WEIGHT = 0.1  # of the newest payload in the running mean: some tens of tasks decide

    def __init__(self, max_bytes: int | None) -> None:
        self._max_bytes = max_bytes
        self._mean: float | None = None
        self.used = 0
        self.running = 0

    def ceilings(self) -> Sequence[ByteCeiling]:
        """As they stand now, each of which holds."""
        return () if self._max_bytes is None else (ByteCeiling(self._max_bytes, self.used, self.running),)

    def add(self, size: int) -> None:
        self.used += size
        self._mean = size if self._mean is None else self._mean + self._WEIGHT * (size - self._mean)

    def remove(self, size: int) -> None:
        self.used -= size

    def start(self, size: int) -> None:
        """A handler begins that was given so much."""
        self.running += size

    def end(self, size: int) -> None:
        """It has returned."""
        self.running -= size

    def limit(self) -> int | None:
        """Tasks that the next claim may take (None: no bound): at least one while anything is left, else 0."""
        left = min((ceiling.most - ceiling.held for ceiling in self.ceilings()), default=None)
        if left is None:
            return None
        if left <= 0:
            return 0
        return max(1, int(left / max(self._mean, 1))) if self._mean is not None else 1

    def admits(self, size: int) -> bool:
        """Whether a payload may start beside those that run. One beyond a whole ceiling starts alone."""
        ceilings = self.ceilings()
        return not ceilings or all(one.running == 0 or one.running + size <= one.most for one in ceilings)

    def beyond(self, size: int) -> int | None:
        """The ceiling that such a payload could never keep under; None where there is none."""
        ceilings = self.ceilings()
        return min((one.most for one in ceilings if size > one.most), default=None) if ceilings else None
