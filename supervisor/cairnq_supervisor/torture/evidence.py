"""What a run left behind, as the audit reads it: rows, their history, and what the handlers and the clients noted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One row of `cairnq_tasks` at the end."""

    id: str
    name: str
    status: str
    attempt: int
    max_attempts: int
    worker_id: str | None
    lease_until_ms: int | None
    completed_at_ms: int | None
    progress: float | None
    parent_id: str | None
    result: Any
    error: Any
    metadata: Any


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a row's status or owner, or of one that had ended, noted by a trigger.

    `before` None: made; `after` None: removed. `old_...`: before the change. `canceling`: somebody had asked for a
    cancel by then. `key`, `conflict`: those it was made with, as its metadata say; noted when it is made.
    """

    seq: int
    task_id: str
    name: str
    before: str | None
    after: str | None
    old_attempt: int | None
    attempt: int | None
    old_worker: str | None
    worker: str | None
    lease_until_ms: int | None
    canceling: bool
    completed_at_ms: int | None
    at_ms: int
    key: str | None
    conflict: str | None


@dataclass(frozen=True, slots=True)
class Run:
    """One call of a handler for one task. Instants are boottime seconds of the one machine that ran the fleets."""

    run_id: str
    task_id: str
    attempt: int
    worker_id: str
    pid: int
    began: float
    trusted: float | None
    """The last moment at which the handler was seen to run under a trusted lease; None: it never was."""

    ended: float | None
    """When it returned; None: it raised, or was cut off."""

    raised: float | None = None


class Deed(StrEnum):
    """What a client did. A submit and a cancel are noted when they were acknowledged, a retry before it was tried."""

    SUBMITTED = "submitted"
    CANCELED = "canceled"
    RETRIED = "retried"


@dataclass(frozen=True, slots=True)
class Note:
    """One deed of a client."""

    deed: Deed
    task_id: str
    name: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that the audit may look at."""

    rows: Mapping[str, Row]
    changes: Sequence[Change]
    runs: Sequence[Run]
    notes: Sequence[Note]
    effects: Sequence[tuple[str, str]] = ()
    """Pairs of task and run, each inserted in the transaction that settled the task."""

    keys: Mapping[str, str] = field(default_factory=dict)
    """By key: the task that it points at."""

    def noted(self, deed: Deed) -> frozenset[str]:
        """The tasks that this was done to."""
        return frozenset(note.task_id for note in self.notes if note.deed is deed)
