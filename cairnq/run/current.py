"""Which task runs here: inside a handler, log records carry it and OpenTelemetry's span is of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

from cairnq.pure.models import Task
from cairnq.store import tracing

_current: ContextVar[Task | None] = ContextVar("cairnq_current_task", default=None)
_FIELDS = ("cairnq_task_id", "cairnq_name", "cairnq_queue", "cairnq_attempt")
"""Not `task_id`: logging refuses an `extra=` of the application's own that a record has already."""


def performing(task: Task) -> AbstractContextManager[None]:
    """Around one handler call; of a batch, `task` is the first."""
    return _traced(task) if tracing.is_in_use() else _Current(task)


def name_in(task: asyncio.Task[Any]) -> str | None:
    """Of the cairnq task in whose handler an asyncio task was made, where Python (3.12) tells its context."""
    get_context = getattr(task, "get_context", None)
    current = None if get_context is None else get_context().get(_current)
    return None if current is None else current.name


def mark_log_records() -> None:
    """Every log record of this process gets the task's id, name, queue and attempt, all None outside of handlers.

    They are `cairnq_task_id`, `cairnq_name`, `cairnq_queue` and `cairnq_attempt`, for a format or a JSON formatter.
    """
    if not isinstance(logging.getLogRecordFactory(), _Marking):
        logging.setLogRecordFactory(_Marking(logging.getLogRecordFactory()))


class _Current:
    """A third of what a `contextmanager` costs, at every call."""

    __slots__ = ("_task", "_token")

    def __init__(self, task: Task) -> None:
        self._task = task

    def __enter__(self) -> None:
        self._token = _current.set(self._task)

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)


@contextmanager
def _traced(task: Task) -> Iterator[None]:
    with _Current(task), tracing.handling(task):
        yield


class _Marking:
    """A record factory around the one that was there."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record: logging.LogRecord = self._inner(*args, **kwargs)
        task = _current.get()
        values = (None,) * 4 if task is None else (task.id, task.name, task.queue, task.attempt)
        for name, value in zip(_FIELDS, values, strict=True):
            setattr(record, name, value)
        return record
