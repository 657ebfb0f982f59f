"""Counts of what the events told: deaths by cause, beats, outages. Fed with every event that the journal renders."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from cairnq_supervisor.pure.tally import Histogram

_DEATHS = frozenset({"worker.died", "keeper.died", "gateway.died", "worker.spawn-failed", "keeper.spawn-failed"})
_NUMBER = re.compile(r"\d+(\.\d+)?")
_BEAT_FAILURES = ("database", "stale order")


@dataclass(slots=True)
class Chronicle:
    """Since the supervisor's start."""

    events: Counter[str] = field(default_factory=Counter)
    deaths: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By queue (the keeper's and the gateway's is empty) and cause."""

    replacements: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Workers that got a successor before they died, by queue and cause."""

    crashed: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Tasks whose worker died under them, by queue and name."""

    database_failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By operation and kind of error."""

    beats: Histogram = field(default_factory=Histogram)
    beat_failures: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(_BEAT_FAILURES, 0)))
    """Beats that renewed nothing, by cause: the database did not serve them, or the order was too old."""

    def note(self, name: str, fields: Mapping[str, Any]) -> None:
        """Never raises: an event with odd fields is counted by its name."""
        self.events[name] += 1
        queue = str(fields.get("queue", ""))
        if name in _DEATHS:
            self.deaths[queue, _cause(fields)] += 1
        elif name == "worker.replacing":
            self.replacements[queue, _cause(fields)] += 1
        elif name == "worker.settled":
            for task, count in _counts(fields.get("crashed")):
                self.crashed[queue, task] += count
        elif name == "lease.beat":
            self.beats.observe(_whole(fields.get("latency_ms")) / 1000)
        elif name == "lease.beat-failed":
            self.beat_failures[str(fields.get("cause", "unknown"))] += 1
        elif name == "statement.failed":
            self.database_failures[str(fields.get("operation", "")), str(fields.get("kind", ""))] += 1

    def encoded(self) -> dict[str, Any]:
        """As JSON values, for a message."""
        return {
            "events": dict(self.events),
            "deaths": _rows(self.deaths),
            "replacements": _rows(self.replacements),
            "crashed": _rows(self.crashed),
            "database_failures": _rows(self.database_failures),
            "beats": [self.beats.counts, self.beats.total],
            "beat_failures": dict(self.beat_failures),
        }

    @classmethod
    def decoded(cls, document: Mapping[str, Any]) -> Self:
        """What `encoded` gave."""
        counts, total = document["beats"]
        return cls(
            Counter(document["events"]),
            _pairs(document["deaths"]),
            _pairs(document["replacements"]),
            _pairs(document["crashed"]),
            _pairs(document["database_failures"]),
            Histogram(list(counts), float(total)),
            Counter(document["beat_failures"]),
        )


def _rows(counter: Counter[tuple[str, str]]) -> list[list[Any]]:
    return [[*key, count] for key, count in counter.items()]


def _pairs(rows: Iterable[tuple[str, str, int]]) -> Counter[tuple[str, str]]:
    return Counter({(one, other): count for one, other, count in rows})


def _cause(fields: Mapping[str, Any]) -> str:
    """Without what differs each time: a label has few values. A signal and an exit code are told by their numbers."""
    cause = str(fields.get("cause", fields.get("reason", "unknown"))).partition(":")[0]
    return cause if cause.startswith(("signal ", "exit ")) else _NUMBER.sub("N", cause)


def _counts(names: Any) -> list[tuple[str, int]]:
    return [(str(name), _whole(count)) for name, count in names.items()] if isinstance(names, Mapping) else []


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0
