"""A task as people and programs read it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from cairnq.pure.models import Task
from cairnq_supervisor.commands.answer import Record
from cairnq_supervisor.pure.printable import compact_json
from cairnq_supervisor.pure.quantities import format_duration
from cairnq_supervisor.pure.tabular import Column, Table

_COLUMNS = (
    Column("id", whole=True),
    Column("status", whole=True),
    Column("name"),
    Column("queue"),
    Column("attempt", right=True, whole=True),
    Column("submitted", whole=True),
    Column("took", right=True),
    Column("says"),
)


def task_json(task: Task) -> dict[str, Any]:
    """Every column under its name. Times are epoch milliseconds of the database's clock."""
    return asdict(task)


def task_table(tasks: Sequence[Task], *, without: Collection[str] = ()) -> Table:
    """`without`: columns in which every row says the same."""
    shown = [index for index, column in enumerate(_COLUMNS) if column.title not in without]
    rows = [_row(task) for task in tasks]
    return Table([_COLUMNS[index] for index in shown], [[row[index] for index in shown] for row in rows])


def task_record(task: Task) -> Record:
    """What is set; the rest would only hide it."""
    facts: list[tuple[str, str]] = [
        ("id", task.id),
        ("name", task.name),
        ("queue", task.queue),
        ("status", task.status),
        ("attempt", f"{task.attempt} of {task.max_attempts}"),
        ("priority", str(task.priority)),
        ("submitted", when(task.created_at_ms)),
    ]
    optional = [
        ("run at", when(task.run_at_ms) if task.queued else None),
        ("worker", task.worker_id),
        ("lease until", when(task.lease_until_ms)),
        ("cancel asked", when(task.cancel_requested_at_ms)),
        ("progress", None if task.progress is None or task.is_terminal else f"{task.progress:.0%}"),
        ("message", task.message),
        ("ended", when(task.completed_at_ms)),
        ("parent", task.parent_id),
        ("root", None if task.root_id == task.id else task.root_id),
        ("correlation", task.correlation_id),
        ("payload", compact_json(task.payload)),
        ("metadata", compact_json(task.metadata) if task.metadata else None),
        ("result", compact_json(task.result) if task.succeeded else None),
        ("error", None if task.error is None else error_line(task.error)),
    ]
    return Record(facts + [(name, value) for name, value in optional if value])


def when(at_ms: int | None) -> str:
    """A moment of the database's clock in UTC, empty for none."""
    if at_ms is None:
        return ""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (OverflowError, OSError, ValueError):  # another SDK may have written any number
        return f"{at_ms} ms"


def _moment(at_ms: int) -> str:
    """Short, for a column: the time of today, in UTC by this host's clock, the day of what is older."""
    written, today = when(at_ms), datetime.now(UTC).strftime("%Y-%m-%d ")
    return written.removeprefix(today) if written.startswith(today) else written.partition(" ")[0]


def error_line(error: Any) -> str:
    if not isinstance(error, dict):
        return compact_json(error)
    details = f" {compact_json(error['details'])}" if error.get("details") else ""
    said = f"{error.get('message')}{details}"
    if error.get("code") == "handler_error" and error.get("type"):
        said = f"{error['type']}: {said}"  # the message of a KeyError is nothing but the key
    return f"{error.get('code')}: {said}"


def _row(task: Task) -> Sequence[str]:
    took = "" if task.completed_at_ms is None else _rough(task.completed_at_ms - task.created_at_ms)
    attempts = f"{task.attempt}/{task.max_attempts}"
    return [task.id, task.status, task.name, task.queue, attempts, _moment(task.created_at_ms), took, _says(task)]


def _says(task: Task) -> str:
    if task.error is not None:
        return error_line(task.error)
    progress = "" if task.progress is None or task.is_terminal else f"{task.progress:.0%} "
    return progress + (task.message or "")


def _rough(ms: int) -> str:
    """A duration to two or three digits: nobody reads the rest."""
    for unit_ms, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m")):
        if ms >= unit_ms:
            return f"{ms / unit_ms:.1f}{unit}"
    return f"{ms / 1000:.2g}s" if ms >= 1000 else format_duration(ms / 1000)
