"""Rows of the `task_columns` fragment, decoded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cairnq.pure.jsonio import decode, size_of
from cairnq.pure.models import ClaimedTask, Task


def task(row: Sequence[Any]) -> Task:
    """The JSON columns come as text, so that no driver's own decoding stands between the wire and us."""
    columns = list(row)
    columns[4:8] = map(decode, row[4:8])
    return Task(*columns)


def claimed(rows: Iterable[Sequence[Any]]) -> list[ClaimedTask]:
    """In claim order: the statement returns its rows in none."""
    found = [ClaimedTask(task(row), size_of(row[4])) for row in rows]
    found.sort(key=lambda item: (-item.task.priority, item.task.run_at_ms, item.task.id))
    return found
