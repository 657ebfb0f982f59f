"""Rows of the `task_columns` fragment, decoded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, make_dataclass
from json import JSONDecoder
from typing import Any

from cairnq.pure.arguments import Submission
from cairnq.pure.jsonio import decode, size_of
from cairnq.pure.models import ClaimedTask, Task

_scan: Any = JSONDecoder().scan_once  # type: ignore[attr-defined]
_Draft: Any = make_dataclass("_Draft", [field.name for field in fields(Task)], slots=True)
"""A task that is not frozen yet. A frozen one is given its fields one by one through `object.__setattr__`, which takes
three times as long; with the same slots, the one can become the other."""


def task(row: Sequence[Any]) -> Task:
    """The JSON columns come as text, so that no driver's own decoding stands between the wire and us."""
    columns = list(row)
    columns[4] = value(row[4])
    if row[5] is not None:
        columns[5] = value(row[5])
    if row[6] is not None:
        columns[6] = value(row[6])
    columns[7] = {} if row[7] == "{}" else value(row[7])
    draft = _Draft(*columns)
    draft.__class__ = Task
    made: Task = draft
    return made


def queued(item: Submission, created_at_ms: int) -> Task:
    """The task as it now stands: what was sent, and the time that the database chose."""
    draft = _Draft(
        item.id,
        item.name,
        item.queue,
        "queued",
        value(item.payload),
        None,
        None,
        {} if item.metadata == "{}" else value(item.metadata),
        None,
        None,
        0,
        item.max_attempts,
        item.priority,
        None,
        None,
        created_at_ms + item.delay_ms,
        None,
        item.parent_id,
        item.root_id or item.id,
        item.correlation_id,
        created_at_ms,
        created_at_ms,
        None,
    )
    draft.__class__ = Task
    made: Task = draft
    return made


def claimed(rows: Iterable[Sequence[Any]]) -> list[ClaimedTask]:
    """In claim order: the statement returns its rows in none."""
    return in_claim_order([ClaimedTask(task(row), size_of(row[4])) for row in rows])


def in_claim_order(found: Iterable[ClaimedTask]) -> list[ClaimedTask]:
    return sorted(found, key=lambda item: (-item.task.priority, item.task.run_at_ms, item.task.id))


def value(text: str) -> Any:
    """`decode`, less what `json.loads` does around its scanner for texts that no database made."""
    try:
        found, end = _scan(text, 0)
    except (StopIteration, ValueError, RecursionError):
        return decode(text)
    return found if end == len(text) else decode(text)
