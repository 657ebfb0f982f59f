"""The metrics of a process tree, made from the supervisor's status and its books."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cairnq_supervisor.pure.chronicle import Chronicle
from cairnq_supervisor.pure.exposition import Family
from cairnq_supervisor.pure.lifecycle import SeatState
from cairnq_supervisor.pure.tally import BOUNDS, Tally

Status = Mapping[str, Any]
"""The document of `cairnq status --json`."""


def _most_calls(queue: Status) -> int:
    """The status says how many one process may run."""
    return int(queue["concurrency"] * queue["processes"]["want"])


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


_QUEUE_GAUGES = (
    # metric, what it says, how to read it from a queue's part of the status
    ("processes_wanted", "Worker processes that this host is to run", lambda q: q["processes"]["want"]),
    ("processes_ready", "Worker processes that are ready", lambda q: q["processes"]["ready"]),
    ("concurrency", "Handler calls that the wanted processes may run at once", _most_calls),
    ("in_flight_calls", "Handler calls that are running or about to", lambda q: q["in_flight"]),
    ("in_flight_bytes", "Payload bytes that are held", lambda q: q["in_flight_bytes"]),
    ("in_flight_bytes_limit", "Payload bytes that may be held", lambda q: q.get("max_in_flight_bytes")),
    ("backlog", "Due tasks that wait, of all hosts", lambda q: q.get("backlog")),
    ("demand", "Due and running tasks, of all hosts", lambda q: q.get("demand")),
    ("suspects", "Queued tasks that are to run alone, of all hosts", lambda q: q.get("suspects")),
    ("oldest_seconds", "How long the oldest due task has waited", lambda q: _scaled(q.get("oldest_ms"), 1e-3)),
    ("paused", "1 while claiming is paused", lambda q: int(bool(q.get("paused")))),
)
_WORKER_GAUGES = (
    ("in_flight_calls", "Handler calls of this worker", lambda w: w["in_flight"]),
    ("in_flight_bytes", "Payload bytes of this worker", lambda w: w["in_flight_bytes"]),
    ("resident_bytes", "Resident memory", lambda w: w.get("rss")),
    ("loop_lag_seconds", "How late its event loop last turned", lambda w: _scaled(w.get("loop_lag_ms"), 1e-3)),
    ("age_seconds", "Since its fork", lambda w: w.get("age_s")),
    ("flapping", "1 while it dies too often", lambda w: int(bool(w.get("flapping")))),
)
_AT_WORK = frozenset({SeatState.READY, SeatState.QUIESCING})


def families(status: Status, tallies: Mapping[str, Tally], chronicle: Chronicle) -> list[Family]:
    """`tallies` are by queue, summed over every worker that there was."""
    workers = _one_in_each_place(status["workers"])
    return [
        *_of_supervisor(status["supervisor"]),
        *_of_host(status),
        *_of_keeper(status["keeper"]),
        *_gauges("cairnq_queue_", _QUEUE_GAUGES, status["queues"], lambda q: {"queue": q["name"]}),
        *_gauges("cairnq_worker_", _WORKER_GAUGES, workers, _worker_labels),
        _worker_states(workers),
        *_of_resources(status.get("resources", {})),
        *_of_tasks(tallies),
        *_of_chronicle(chronicle),
    ]


def _of_supervisor(supervisor: Status) -> Iterator[Family]:
    info = Family("cairnq_supervisor_info", "gauge", "What runs here; always 1")
    info.add(
        1,
        state=str(supervisor["state"]),
        schema=str(supervisor.get("schema", "")),
        protocol=str(supervisor.get("protocol_version", "")),
    )
    yield info
    generation = Family("cairnq_supervisor_generation", "gauge", "Of the oldest workers; each reload makes one")
    generation.add(supervisor.get("generation"))
    yield generation


def _of_host(status: Status) -> Iterator[Family]:
    held = Family("cairnq_in_flight_bytes", "gauge", "Payload bytes that are held, of all queues of this host")
    held.add(sum(queue["in_flight_bytes"] for queue in status["queues"]))
    yield held
    limit = Family("cairnq_in_flight_bytes_limit", "gauge", "Payload bytes that may be held, of all queues")
    limit.add(status["supervisor"].get("max_in_flight_bytes"))
    yield limit


def _of_keeper(keeper: Status) -> Iterator[Family]:
    leases = Family("cairnq_leases", "gauge", "Leases that are kept alive for the workers of this host")
    leases.add(keeper.get("leases"))
    yield leases
    listening = Family("cairnq_listening", "gauge", "1 while notifications are proved to arrive")
    listening.add(int(bool(keeper.get("listening"))))
    yield listening


def _gauges(prefix: str, gauges: Sequence[Any], parts: Iterable[Status], labels: Any) -> Iterator[Family]:
    parts = list(parts)
    for name, says, read in gauges:
        family = Family(prefix + name, "gauge", says)
        for part in parts:
            family.add(read(part), **labels(part))
        yield family


def _one_in_each_place(workers: Iterable[Status]) -> list[Status]:
    """A worker and its successor share their labels, and a series may stand on the page but once.

    The one at work is shown, or else the latest.
    """
    shown: dict[tuple[str, str], Status] = {}
    for worker in workers:
        place = (worker["queue"], str(worker["slot"]))
        if place not in shown or worker["state"] in _AT_WORK or shown[place]["state"] not in _AT_WORK:
            shown[place] = worker
    return list(shown.values())


def _worker_labels(worker: Status) -> dict[str, str]:
    return {"queue": worker["queue"], "slot": str(worker["slot"])}


def _worker_states(workers: Iterable[Status]) -> Family:
    family = Family("cairnq_worker_state", "gauge", "1 for the state that each worker's seat is in")
    for worker in workers:
        family.add(1, **_worker_labels(worker), state=str(worker["state"]))
    return family


def _of_resources(resources: Status) -> Iterator[Family]:
    for part, says in (("capacity", "Units of a resource"), ("held", "Units of a resource that are in use")):
        family = Family(f"cairnq_resource_{part}", "gauge", says)
        for name, resource in resources.items():
            family.add(resource[part], resource=name)
        yield family


def _of_tasks(tallies: Mapping[str, Tally]) -> Iterator[Family]:
    claimed = Family("cairnq_tasks_claimed_total", "counter", "Attempts claimed by this host")
    ended = Family("cairnq_tasks_ended_total", "counter", "Attempts of this host that ended, by what became of them")
    wait = Family("cairnq_task_wait_seconds", "histogram", "From due to claimed, by the database's clock")
    duration = Family("cairnq_task_duration_seconds", "histogram", "From the handler's start to its outcome's record")
    for queue, tally in tallies.items():
        for name, of_name in tally.names.items():
            claimed.add(of_name.claimed, queue=queue, name=name)
            for fate, count in of_name.fates.items():
                ended.add(count, queue=queue, name=name, outcome=str(fate))
            wait.add_histogram(BOUNDS, of_name.wait.counts, of_name.wait.total, queue=queue, name=name)
            duration.add_histogram(BOUNDS, of_name.duration.counts, of_name.duration.total, queue=queue, name=name)
    yield from (claimed, ended, wait, duration)


def _of_chronicle(chronicle: Chronicle) -> Iterator[Family]:
    crashed = Family("cairnq_tasks_crashed_total", "counter", "Started tasks whose worker died under them")
    for (queue, name), count in chronicle.crashed.items():
        crashed.add(count, queue=queue, name=name)
    deaths = Family("cairnq_process_deaths_total", "counter", "Processes of this tree that died unasked, by cause")
    for (queue, cause), count in chronicle.deaths.items():
        deaths.add(count, queue=queue, cause=cause)
    replaced = Family("cairnq_worker_replacements_total", "counter", "Workers that left for a successor, by cause")
    for (queue, cause), count in chronicle.replacements.items():
        replaced.add(count, queue=queue, cause=cause)
    failures = Family("cairnq_database_failures_total", "counter", "Statements not served, by operation")
    for (operation, kind), count in chronicle.database_failures.items():
        failures.add(count, operation=operation, error=kind)
    beats = Family("cairnq_beat_seconds", "histogram", "How long the beats took that renewed the leases")
    beats.add_histogram(BOUNDS, chronicle.beats.counts, chronicle.beats.total)
    unbeaten = Family("cairnq_beat_failures_total", "counter", "Beats that renewed nothing, by cause")
    for cause, count in chronicle.beat_failures.items():
        unbeaten.add(count, cause=cause)
    events = Family("cairnq_events_total", "counter", "Events of this tree, by name")
    for name, count in chronicle.events.items():
        events.add(count, event=name)
    yield from (crashed, deaths, replaced, failures, beats, unbeaten, events)
