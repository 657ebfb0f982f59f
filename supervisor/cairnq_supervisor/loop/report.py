"""The state of everything as one document: what `cairnq status --json` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from cairnq_supervisor.loop.fleet import Fleet
from cairnq_supervisor.loop.house import House
from cairnq_supervisor.loop.worker_seat import WorkerSeat
from cairnq_supervisor.pure import dsn
from cairnq_supervisor.pure.lifecycle import FleetState, SeatState
from cairnq_supervisor.pure.rendering import Occurrence, as_line
from cairnq_supervisor.pure.settings import QueueSettings
from cairnq_supervisor.system.processes import resident_bytes

_GAUGES = ("in_flight", "in_flight_bytes", "claimed", "succeeded", "failed", "released")


def report(
    fleet: Fleet,
    house: House,
    *,
    gateway: dict[str, Any] | None,
    state: FleetState,
    pid: int,
    started_at: float,
    latest: Occurrence | None,
) -> dict[str, Any]:
    """`started_at` is epoch seconds, `latest` the last event worth a line.

    Sizes are bytes, durations as their names say, times RFC 3339 in UTC.
    """
    now = house.clock()
    workers = [_worker(seat, now) for seat in fleet.workers]
    return {
        "supervisor": {
            "pid": pid,
            "state": state,
            "started_at": datetime.fromtimestamp(started_at, UTC).isoformat(timespec="milliseconds"),
            "generation": fleet.roster.oldest,
            "protocol_version": house.installation.protocol_version,
            "schema": house.installation.schema,
            "database": dsn.shown(house.settings.database),
            "max_in_flight_bytes": house.settings.max_in_flight_bytes,
            "last_event": None if latest is None else as_line(latest),
        },
        "keeper": _keeper(fleet, now),
        "gateway": gateway,
        "queues": [_queue(queue, fleet, workers) for queue in fleet.roster.queues],
        "workers": workers,
        "resources": fleet.resources.held(),
        "totals": {gauge: sum(worker[gauge] for worker in workers) + fleet.past[gauge] for gauge in _GAUGES},
    }


def _keeper(fleet: Fleet, now: float) -> dict[str, Any]:
    seat, beat = fleet.keeper, fleet.keeper.last_beat
    return {
        "pid": seat.pid,
        "state": seat.state,
        "leases": sum(worker.incarnation.table.held for worker in fleet.workers if worker.incarnation is not None),
        "last_beat_ms": round((now - beat.ordered_at) * 1000) if beat is not None else None,
        "beat_latency_ms": beat.latency_ms if beat is not None else None,
        "listening": seat.listening,
        "duties": len(seat.duties),
    }


def _queue(queue: QueueSettings, fleet: Fleet, workers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    own = [worker for worker in workers if worker["queue"] == queue.name]
    due, running, oldest_ms, suspects = fleet.keeper.backlog.get(queue.name, (0, 0, None, 0))
    return {
        "name": queue.name,
        "processes": {
            "want": fleet.roster.wanted(queue.name),
            "ready": sum(seat.state is SeatState.READY for seat in fleet.roster.of(queue.name)),
        },
        "concurrency": queue.concurrency,
        "in_flight": sum(worker["in_flight"] for worker in own),
        "in_flight_bytes": sum(worker["in_flight_bytes"] for worker in own),
        "max_in_flight_bytes": queue.max_in_flight_bytes,
        "backlog": due,
        "demand": (due or 0) + (running or 0),
        "oldest_ms": oldest_ms,
        "suspects": suspects,
        "paused": fleet.roster.is_paused(queue.name),
    }


def _worker(seat: WorkerSeat, now: float) -> dict[str, Any]:
    """The gauges come from shared memory, so that a worker that hangs is shown as well as any other."""
    incarnation, table = seat.incarnation, seat.incarnation.table if seat.incarnation is not None else None
    return {
        **seat.name,
        "pid": seat.pid,
        "worker_id": incarnation.worker_id if incarnation is not None else None,
        "state": seat.state,
        "generation": seat.generation,
        "flapping": seat.flapping,
        "in_flight": table.in_flight_calls if table is not None else 0,
        "in_flight_bytes": table.in_flight_bytes if table is not None else 0,
        "concurrency": seat.queue.concurrency,
        "claimed": table.claimed if table is not None else 0,
        "succeeded": table.succeeded if table is not None else 0,
        "failed": table.failed if table is not None else 0,
        "released": table.released if table is not None else 0,
        "rss": resident_bytes(seat.pid) if seat.pid is not None else None,
        "age_s": round(now - seat.ready_since, 3) if seat.ready_since is not None else None,
        "loop_lag_ms": round(_lag(seat, now) * 1000),
        "task_ids": [entry.task_id for entry in table.entries()] if table is not None else [],
    }


def _lag(seat: WorkerSeat, now: float) -> float:
    """Seconds by which the worker's loop is late: as it said itself, or since it last turned, where it hangs."""
    if seat.incarnation is None or seat.incarnation.table.last_progress == 0.0:
        return 0.0
    table = seat.incarnation.table
    silent = now - table.last_progress - _PULSE
    return max(table.loop_lag, silent, 0.0)


_PULSE = 1.0
"""Seconds between two turns of the pulse in a worker's loop, at most."""
