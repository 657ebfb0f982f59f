"""The configuration as a value, and how layers of raw values (file, environment, flags) become it.

Nothing is refused one at a time: every fault of every layer is collected, with where it stands and what would be right.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cairnq_supervisor.pure.keys import AUTO, KEYS, MAX_PROCESSES, QUEUE_KEYS, TABLES, TOP_KEYS, Address, Range, Scope

DEFAULT_QUEUE = "default"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: where it stands, which key, and what would be right."""

    origin: str
    key: str
    problem: str

    def __str__(self) -> str:
        return f"{self.origin}: {self.key} {self.problem}"


class ConfigurationError(Exception):
    """The configuration cannot be used. `faults` are all of them."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = tuple(faults)


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """One queue that this host works on. Durations are seconds."""

    name: str
    processes: int = 1
    max_processes: int | None = None
    """Where `processes` is a range, its upper end; `processes` is the lower one then."""
    concurrency: int = 10
    handlers: tuple[str, ...] | None = None
    lease: float = 30.0
    poll: float = 0.5
    max_run: float | None = None
    stall_timeout: float = 600.0
    max_tasks: int | None = None
    max_age: float | None = None
    max_rss: int | None = None
    max_in_flight_bytes: int | None = None
    """Payload bytes in memory, over all its processes on this host."""
    retry_backoff: float = 1.0
    retry_backoff_max: float = 30.0
    quarantine: bool = False
    """Not to be configured: such a worker takes suspects alone, one at a time."""

    @property
    def most_processes(self) -> int:
        return self.max_processes or self.processes


@dataclass(frozen=True, slots=True)
class Settings:
    """All that `cairnq run` is told. Durations are seconds; the DSNs stay out of every `repr`."""

    app: str
    queues: tuple[QueueSettings, ...]
    database: str = field(repr=False)
    listen_database: str | None = field(default=None, repr=False)
    schema: str | None = None
    migrate: bool = True
    preload: bool = True
    drain_timeout: float = 25.0
    boot_timeout: float = 60.0
    connect_timeout: float = 30.0
    http: Address | None = None
    log: str | None = None
    max_in_flight_bytes: int | None = None
    """Payload bytes in memory, over all queues of this host."""
    resources: Mapping[str, int] = field(default_factory=dict)
    retention: Mapping[str, float] = field(default_factory=dict)

    @property
    def shortest_lease(self) -> float:
        return min(queue.lease for queue in self.queues)


@dataclass(frozen=True, slots=True)
class Layer:
    """Raw values from one place. Later layers override earlier ones, key by key."""

    origin: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class QueueChoice:
    """`--queue name` (the configured one) or `--queue name=processes:concurrency`."""

    name: str
    processes: int | None = None
    concurrency: int | None = None


def parse_choice(argument: str) -> QueueChoice:
    """Raises `ValueError` that says what would be right."""
    name, equals, sizes = argument.partition("=")
    if not name or (equals and not sizes):
        raise ValueError(f"{argument!r} is not a queue; write NAME or NAME=PROCESSES:CONCURRENCY, such as mail=2:16")
    if not equals:
        return QueueChoice(name)
    processes, _, concurrency = sizes.partition(":")
    if not all(part.isascii() and part.isdigit() and int(part) >= 1 for part in (processes, concurrency)):
        raise ValueError(f"{argument!r} needs two whole numbers, 1 or more, such as {name}=2:16")
    if int(processes) > MAX_PROCESSES:
        raise ValueError(f"{argument!r} asks for {processes} processes; at most {MAX_PROCESSES} are started")
    return QueueChoice(name, int(processes), int(concurrency))


def combine(
    layers: Sequence[Layer],
    choices: Sequence[QueueChoice],
    *,
    database: str,
    cores: int,
    needs_app: bool = True,
    how_to_name_app: str = 'write app = "module:attribute", a cairnq.Registry',
) -> tuple[Settings | None, list[Fault]]:
    """The settings, or every fault of them. `cores` is what "auto" means on this host."""
    faults: list[Fault] = []
    top: dict[str, Any] = {}
    queues: dict[str, dict[str, Any]] = {}
    for layer in layers:
        top.update(_checked(layer.origin, "", layer.values, TOP_KEYS | TABLES, faults))
        for name, values in _tables(layer, faults):
            queues.setdefault(name, {}).update(_checked(layer.origin, f"queues.{name}.", values, QUEUE_KEYS, faults))
    origin = layers[0].origin if layers else "command line"
    if not needs_app:
        top.setdefault("app", "")
    elif "app" not in top and not any(fault.key == "app" for fault in faults):
        faults.append(Fault(origin, "app", f"is missing; {how_to_name_app}"))
    chosen = _chosen(queues, choices, faults)
    built = tuple(_queue(name, values, top, cores, origin, faults) for name, values in chosen.items())
    if faults:
        return None, faults
    plain = {key: value for key, value in top.items() if key in Settings.__dataclass_fields__}
    return Settings(**{**plain, "queues": built, "database": database}), []


def _checked(
    origin: str, prefix: str, values: Mapping[str, Any], known: Iterable[str], faults: list[Fault]
) -> dict[str, Any]:
    """The typed values of one table. What is unknown or wrong becomes a fault instead."""
    typed: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            faults.append(Fault(origin, prefix + name, _unknown(name, known)))
        elif name in KEYS:
            try:
                typed[name] = KEYS[name].parse(value)
            except ValueError as error:
                faults.append(Fault(origin, prefix + name, f"is {_shown(name, value)}; it must be {error}"))
    return typed


def _unknown(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(sorted(known))}"
    elsewhere = " (it belongs into a [queues.NAME] table)" if name in QUEUE_KEYS else ""
    elsewhere = " (it belongs to the top level)" if name in TOP_KEYS and name not in QUEUE_KEYS else elsewhere
    return f"is not a key{elsewhere}" if elsewhere else f"is not a key; {hint}"


def _shown(name: str, value: Any) -> str:
    """A wrong value for a message, except where it may carry a password."""
    return "not usable" if "database" in name else json.dumps(value, default=str)


def _tables(layer: Layer, faults: list[Fault]) -> list[tuple[str, Mapping[str, Any]]]:
    queues = layer.values.get("queues", {})
    if not isinstance(queues, dict):
        faults.append(Fault(layer.origin, "queues", "must be tables, one for each queue: [queues.default]"))
        return []
    for name, values in queues.items():
        if not isinstance(values, dict):
            faults.append(Fault(layer.origin, f"queues.{name}", f"must be a table: [queues.{name}]"))
    return [(name, values) for name, values in queues.items() if isinstance(values, dict)]


def _chosen(
    queues: dict[str, dict[str, Any]], choices: Sequence[QueueChoice], faults: list[Fault]
) -> dict[str, dict[str, Any]]:
    """Without a choice every configured queue runs, and `default` where none is configured."""
    if not choices:
        return queues or {DEFAULT_QUEUE: {}}
    chosen: dict[str, dict[str, Any]] = {}
    for choice in choices:
        values = dict(queues.get(choice.name, {}))
        if choice.processes is not None:
            values.update(processes=choice.processes, concurrency=choice.concurrency)
        elif choice.name not in queues:
            known = ", ".join(queues) or "none"
            problem = f"{choice.name!r} is not configured (configured: {known}); name its size: {choice.name}=1:10"
            faults.append(Fault("command line", "--queue", problem))
        chosen[choice.name] = values
    return chosen


def _queue(
    name: str, values: Mapping[str, Any], top: Mapping[str, Any], cores: int, origin: str, faults: list[Fault]
) -> QueueSettings:
    inherited = {key: top[key] for key in QUEUE_KEYS & top.keys() if KEYS[key].scope is Scope.BOTH}
    merged = {**inherited, **values}
    processes = merged.get("processes")
    if processes == AUTO:
        merged["processes"] = cores
    elif isinstance(processes, Range):
        merged.update(processes=processes.low, max_processes=processes.high)
    queue = QueueSettings(name, **merged)
    if queue.retry_backoff > queue.retry_backoff_max:
        problem = f"({queue.retry_backoff:g}s) is longer than retry_backoff_max ({queue.retry_backoff_max:g}s)"
        faults.append(Fault(origin, f"queues.{name}.retry_backoff", problem))
    return queue
