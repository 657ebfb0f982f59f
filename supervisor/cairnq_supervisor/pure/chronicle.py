"""Counts of what the events told: deaths by cause, beats, outages. Fed with every event that the journal renders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0
