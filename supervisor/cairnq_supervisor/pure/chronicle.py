"""Counts of what the events told: deaths by cause, beats, outages. Fed with every event that the journal renders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from cairnq_supervisor.pure.tally import Histogram

_DEATHS = frozenset({"worker.died", "keeper.died", "gateway.died", "worker.spawn-failed", "keeper.spawn-failed"})
_DATABASE = frozenset({"database.failed", "database.failed-too"})


@dataclass(slots=True)
class Chronicle:
    """Since the supervisor's start."""

    events: Counter[str] = field(default_factory=Counter)
    deaths: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By queue (the keeper's and the gateway's is empty) and cause."""

    crashed: Counter[str] = field(default_factory=Counter)
    """Tasks whose worker died under them, by queue."""

    database_failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By operation and kind of error, each process's first in an outage."""

    beats: Histogram = field(default_factory=Histogram)

    def note(self, name: str, fields: Mapping[str, Any]) -> None:
        """Never raises: an event with odd fields is counted by its name."""
        self.events[name] += 1
        queue = str(fields.get("queue", ""))
        if name in _DEATHS:
            self.deaths[queue, str(fields.get("cause", fields.get("reason", "unknown")))] += 1
        elif name == "worker.settled":
            self.crashed[queue] += _whole(fields.get("failed"))
        elif name == "lease.beat":
            self.beats.observe(_whole(fields.get("latency_ms")) / 1000)
        elif name in _DATABASE:
            kind = str(fields.get("error", "")).partition(":")[0]
            self.database_failures[str(fields.get("operation", "")), kind] += 1

    def encoded(self) -> dict[str, Any]:
        """As JSON values, for a message."""
        return {
            "events": dict(self.events),
            "deaths": [[*key, count] for key, count in self.deaths.items()],
            "crashed": dict(self.crashed),
            "database_failures": [[*key, count] for key, count in self.database_failures.items()],
            "beats": [self.beats.counts, self.beats.total],
        }

    @classmethod
    def decoded(cls, document: Mapping[str, Any]) -> Self:
        """What `encoded` gave."""
        counts, total = document["beats"]
        return cls(
            Counter(document["events"]),
            Counter({(queue, cause): count for queue, cause, count in document["deaths"]}),
            Counter(document["crashed"]),
            Counter({(operation, kind): count for operation, kind, count in document["database_failures"]}),
            Histogram(list(counts), float(total)),
        )


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0
