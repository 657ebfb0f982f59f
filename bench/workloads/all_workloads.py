"""The workloads by their names, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bench.figures import Figure
from bench.session import Session
from bench.workloads import (
    backlog,
    beats,
    cost,
    cpu,
    depth,
    drain,
    embedded,
    enqueue,
    enqueue_draining,
    latency,
    leases,
    payloads,
    rest,
    sleeping,
    trigger,
    watching,
)

Measure = Callable[[Session], Iterator[Figure]]


def _bounded(name: str, measure: Measure) -> Measure:
    """As one step, for those that have no steps of their own: bounded in time all the same."""

    def measured(session: Session) -> Iterator[Figure]:
        yield from session.attempt(name, lambda: list(measure(session)), WHOLE_S) or []

    return measured


WHOLE_S = 420.0
WORKLOADS: dict[str, Measure] = {
    "drain": drain.measure,
    "sleeping": sleeping.measure,
    "cpu": cpu.measure,
    "enqueue": enqueue.measure,
    "enqueue_draining": enqueue_draining.measure,
    "latency": latency.measure,
    "rest": rest.measure,
    "leases": leases.measure,
    "payloads": payloads.measure,
    "backlog": backlog.measure,
    "cost": _bounded("cost", cost.measure),
    "beats": _bounded("beats", beats.measure),
    "depth": _bounded("depth", depth.measure),
    "trigger": _bounded("trigger", trigger.measure),
    "embedded": _bounded("embedded", embedded.measure),
    "watching": _bounded("watching", watching.measure),
}
