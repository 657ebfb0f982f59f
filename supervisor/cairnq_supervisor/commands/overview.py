"""A status report laid out for people: the supervisor, its queues, its workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cairnq_supervisor.commands.answer import Block, Note, Record
from cairnq_supervisor.pure.printable import clip
from cairnq_supervisor.pure.quantities import format_age
from cairnq_supervisor.pure.tabular import Column, Table

Report = Mapping[str, Any]

_QUEUES = (
    Column("queue"),
    Column("state", whole=True),
    *(Column(title, right=True, whole=True) for title in ("workers", "calls", "waiting", "oldest", "done/s")),
)
_WORKERS = (
    Column("worker"),
    Column("state", whole=True),
    *(Column(title, right=True) for title in ("calls", "done", "failed", "MiB", "age", "lag ms", "pid", "released")),
)
_LEAVING = ("draining", "closing")
_LONGEST_EVENT = 200
"""Columns: three lines of a small screen."""

_OTHER_LINES = 10
"""The event's three, a blank one before each of two tables, two for its headings, and where the cursor stays."""


def overview(report: Report, before: Report | None, elapsed: float, *, height: int | None = None) -> list[Block]:
    """`before`: the report of `elapsed` seconds ago, from which rates are told; None: there are none yet.

    `height`: lines of the screen that it is to fit on, as far as leaving out workers helps; None: it may be longer.
    """
    supervisor, keeper = report["supervisor"], report["keeper"]
    head = [
        ("supervisor", f"{supervisor['state']}, pid {supervisor['pid']}, since {_moment(supervisor['started_at'])}"),
        ("database", _database(supervisor)),
        ("keeper", _keeper(keeper)),
    ]
    if gateway := report.get("gateway"):
        head.append(("gateway", _gateway(gateway)))
    latest = clip(" ".join((supervisor.get("last_event") or "none yet").split()), _LONGEST_EVENT)
    rates = {} if before is None or elapsed <= 0 else _rates(report, before, elapsed)
    leaving = str(supervisor["state"]) if supervisor["state"] in _LEAVING else None
    queues = [_queue(queue, report["workers"], rates.get(queue["name"]), leaving) for queue in report["queues"]]
    workers = [_worker(worker) for worker in report["workers"]]
    blocks: list[Block] = [Record(head), Note("last event  ", latest)]
    blocks += ["", Table(_QUEUES, queues), "", Table(_WORKERS, workers)]
    room = len(workers) if height is None else max(1, height - len(head) - len(queues) - _OTHER_LINES)
    if len(workers) > room:
        blocks[-1] = Table(_WORKERS, workers[: room - 1])
        blocks.append(f"and {len(workers) - room + 1} more workers")
    return blocks


def _database(supervisor: Report) -> str:
    """A file has no schemas."""
    named: str = supervisor["database"]
    return named if named.startswith("/") else f"{named} (schema {supervisor['schema']})"


def _moment(rfc3339: str) -> str:
    return f"{rfc3339[:19].replace('T', ' ')}Z"


def _keeper(keeper: Report) -> str:
    words = [f"{keeper['state']}, pid {keeper['pid']}, {keeper['leases']} leases"]
    if keeper["last_beat_ms"] is not None:
        words.append(f"last beat {keeper['last_beat_ms'] / 1000:.1f} s ago in {keeper['beat_latency_ms']} ms")
    words.append("listening" if keeper["listening"] else "not listening")
    return ", ".join(words)


def _gateway(gateway: Report) -> str:
    host = f"[{gateway['host']}]" if ":" in gateway["host"] else gateway["host"]
    return f"{gateway['state']}, pid {gateway['pid']}, http://{host}:{gateway['port']}"


def _queue(queue: Report, workers: Sequence[Report], rate: float | None, leaving: str | None) -> list[str]:
    processes, oldest = queue["processes"], queue.get("oldest_ms")
    state = leaving or _state(queue, [worker for worker in workers if worker["queue"] == queue["name"]])
    return [
        queue["name"],
        state,
        f"{processes['ready']}/{processes['want']}",
        f"{queue['in_flight']}/{queue['concurrency'] * processes['want']}",
        f"{queue.get('backlog', 0):,}",
        "" if oldest is None else format_age(oldest / 1000),
        "" if rate is None else f"{rate:,.1f}",
    ]


def _state(queue: Report, workers: Sequence[Report]) -> str:
    if queue["paused"]:
        return "paused"
    if not queue["processes"]["want"]:
        return "none"  # scaled to no process at all
    if any(worker["flapping"] for worker in workers):
        return "flapping"
    return "ready" if queue["processes"]["ready"] else "waiting"


def _worker(worker: Report) -> list[str]:
    return [
        f"{worker['queue']}/{worker['slot']}",
        f"{worker['state']}, flapping" if worker["flapping"] else worker["state"],
        f"{worker['in_flight']}/{worker['concurrency']}",
        f"{worker['succeeded']:,}",
        f"{worker['failed']:,}",
        "" if worker["rss"] is None else f"{worker['rss'] / 2**20:.0f}",
        "" if worker["age_s"] is None else format_age(worker["age_s"]),
        str(worker["loop_lag_ms"]),
        str(worker["pid"] or ""),
        f"{worker['released']:,}",
    ]


def _rates(report: Report, before: Report, elapsed: float) -> dict[str, float]:
    """Attempts ended a second, by queue. A worker that was not there before has done all that it did since."""
    earlier = {worker["worker_id"]: _ended(worker) for worker in before["workers"]}
    rates: dict[str, float] = {}
    for worker in report["workers"]:
        ended = _ended(worker) - earlier.get(worker["worker_id"], 0)
        rates[worker["queue"]] = rates.get(worker["queue"], 0.0) + ended / elapsed
    return rates


def _ended(worker: Report) -> int:
    return int(worker["succeeded"] + worker["failed"])
