"""The keywords that several methods pass on, as type checkers know them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from cairnq.pure.models import Conflict, TaskStatus


class SubmitKeywords(TypedDict, total=False):
    """Of `CairnQ.submit`, where they are explained; `call` and a handler's `ctx.submit` take them too."""

    key: str | None
    queue: str
    conflict: Conflict
    max_attempts: int
    priority: int
    metadata: Mapping[str, Any] | None
    parent_id: str | None
    root_id: str | None
    correlation_id: str | None
    delay_ms: int | None
    run_at_delay_ms: int | None


class CallKeywords(SubmitKeywords, total=False):
    """Of `CairnQ.call`."""

    timeout_ms: int | None
    wait_timeout_ms: int | None
    poll_ms: int
    max_poll_ms: int


class PurgeKeywords(TypedDict, total=False):
    """Of `CairnQ.purge`: which finished tasks, how old at least (0), and how many at most (1000)."""

    older_than_ms: int
    queue: str | None
    status: TaskStatus | None
    name: str | None
    limit: int


class ListKeywords(TypedDict, total=False):
    """Of `CairnQ.list`: what its tasks match, how many of them at most (100), how many are passed over first (0)."""

    status: TaskStatus | None
    queue: str | None
    name: str | None
    root_id: str | None
    correlation_id: str | None
    limit: int
    offset: int
