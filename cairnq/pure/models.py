"""The records that cross the API: tasks, what names an attempt, and how an attempt is settled."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args

from cairnq.pure import envelope, jsonio
from cairnq.pure.envelope import Envelope

PROTOCOL_VERSION = 1

TaskStatus = Literal["queued", "running", "succeeded", "failed", "canceled"]
STATUSES: tuple[TaskStatus, ...] = ("queued", "running", "succeeded", "failed", "canceled")
TERMINAL_STATUSES: frozenset[str] = frozenset({"succeeded", "failed", "canceled"})

Conflict = Literal["reuse", "reuse-succeeded", "reject", "replace"]
CONFLICTS: tuple[Conflict, ...] = ("reuse", "reuse-succeeded", "reject", "replace")

P = TypeVar("P")
R = TypeVar("R")


def is_terminal_status(status: str) -> bool:
    return status in TERMINAL_STATUSES


@dataclass(unsafe_hash=True)  # frozen or with slots, it could not carry the types that `TaskDef[P, R](...)` gives it
class TaskDef(Generic[P, R]):
    """One symbol for both ends of a task: its name, the type of its payload and the type of its result.

    Either may be a dataclass. Written `TaskDef[P, R]("name")`, the handler gets its payload, and `call` returns its
    result, as instances.
    """

    name: str

    @property
    def payload_type(self) -> Any:
        """P, where it was given; else None."""
        return self._types()[0]

    @property
    def result_type(self) -> Any:
        """R, where it was given; else None."""
        return self._types()[1]

    def _types(self) -> tuple[Any, Any]:
        return get_args(getattr(self, "__orig_class__", None)) or (None, None)


@dataclass(frozen=True, slots=True)
class Task:
    """One row of `cairnq_tasks`, JSON columns decoded. Times are epoch milliseconds of the database's clock."""

    id: str
    name: str
    queue: str
    status: TaskStatus
    payload: Any
    result: Any
    error: Any
    metadata: Any
    progress: float | None
    message: str | None
    attempt: int
    max_attempts: int
    priority: int
    worker_id: str | None
    lease_until_ms: int | None
    run_at_ms: int
    cancel_requested_at_ms: int | None
    parent_id: str | None
    root_id: str | None
    correlation_id: str | None
    created_at_ms: int
    updated_at_ms: int
    completed_at_ms: int | None

    @property
    def queued(self) -> bool:
        return self.status == "queued"

    @property
    def running(self) -> bool:
        return self.status == "running"

    @property
    def succeeded(self) -> bool:
        return self.status == "succeeded"

    @property
    def failed(self) -> bool:
        return self.status == "failed"

    @property
    def canceled(self) -> bool:
        return self.status == "canceled"

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL_STATUSES

    @property
    def cancel_requested(self) -> bool:
        return self.cancel_requested_at_ms is not None


@dataclass(frozen=True, slots=True)
class TaskRef:
    """A task's id and status alone: a cheap look."""

    id: str
    status: TaskStatus

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL_STATUSES


@dataclass(frozen=True, slots=True)
class Held:
    """One attempt that a worker holds. The id alone does not name it: the same worker may claim a task twice."""

    task_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Beat:
    """One lease to renew for `lease_ms` from the database's now."""

    task_id: str
    worker_id: str
    attempt: int
    lease_ms: int


class Outcome(StrEnum):
    """How an attempt ended, as the settling statement knows it. The values are that statement's."""

    COMPLETE = "complete"  # succeeded; a cancel that was asked wins
    SUCCEED = "succeed"  # succeeded, whatever was asked (the low-level write)
    FORGET = "forget"  # succeeded and removed, unless a key points at it
    FAIL = "fail"  # queued again while attempts are left, else failed
    FAIL_PERMANENTLY = "fail_permanently"
    RELEASE = "release"  # given back, attempt not spent; a cancel that was asked wins
    INTERRUPT = "interrupt"  # release of a call that had started: failed where max_attempts is 1
    CRASH = "crash"  # the process died under it alone: as fail, and marked once more
    SUSPECT = "suspect"  # the process died under several: as interrupt, and marked once more


class Settlement(NamedTuple):  # made for each call; a frozen dataclass takes three times as long
    """What to write for one attempt. `body` is JSON text: the result, or the error's envelope."""

    task_id: str
    attempt: int | None  # None: whichever attempt this worker holds (the public single-task calls)
    outcome: Outcome
    body: str | None = None
    delay_ms: int = 0

    @classmethod
    def complete(cls, task_id: str, attempt: int | None, result: Any, *, forget: bool = False) -> Settlement:
        """Raises `SerializationError` if the result is not JSON."""
        outcome = Outcome.FORGET if forget else Outcome.COMPLETE
        return cls(task_id, attempt, outcome, jsonio.encode(result, "the handler's result"))

    @classmethod
    def fail(
        cls, task_id: str, attempt: int | None, error: Envelope, *, retryable: bool, delay_ms: int = 0
    ) -> Settlement:
        """A permanent failure has no delay."""
        outcome = Outcome.FAIL if retryable else Outcome.FAIL_PERMANENTLY
        return cls(task_id, attempt, outcome, jsonio.encode(error, "the error"), delay_ms if retryable else 0)

    @classmethod
    def release(cls, task_id: str, attempt: int, *, started: bool, reason: Envelope | None = None) -> Settlement:
        """`reason` is the envelope that a started call with max_attempts = 1 ends with (default: `interrupted`)."""
        if not started:
            return cls(task_id, attempt, Outcome.RELEASE)
        body = jsonio.encode(reason or envelope.interrupted("released"), "the reason")
        return cls(task_id, attempt, Outcome.INTERRUPT, body)

    @classmethod
    def crash(cls, task_id: str, attempt: int, error: Envelope, *, alone: bool, delay_ms: int) -> Settlement:
        """`error` is a `worker_crashed` envelope. Only `alone` in its process is the attempt spent."""
        outcome = Outcome.CRASH if alone else Outcome.SUSPECT
        return cls(task_id, attempt, outcome, jsonio.encode(error, "the error"), delay_ms)


class Standing(StrEnum):
    """Where an attempt stands in the database, asked after a write of it matched no row or had no reply."""

    HELD = "held"  # running, this worker's, lease ahead: somebody holds the row's lock, try again
    EXPIRED = "expired"  # running, this worker's, but the lease has lapsed: lost
    SUCCEEDED = "succeeded"  # by this very attempt: nobody but its worker writes that
    FAILED = "failed"  # as this attempt's: by its worker, or by who took it back after the last one
    CANCELED = "canceled"  # as this attempt's: by its worker, or by who took it back
    GONE = "gone"  # there is no such row: forgotten, or purged since
    ENDED = "ended"  # no longer this attempt's: queued again, or somebody else's


class ClaimedTask(NamedTuple):
    """A task as the claim returned it, with what only the wire knew: its payload's size in bytes."""

    task: Task
    payload_bytes: int


@dataclass(frozen=True, slots=True)
class QueueBacklog:
    """Counted up to a bound. `oldest_ms`: for how long the oldest due task has waited; None: none is due.

    `suspects`: queued tasks, due or not, that are to run alone.
    """

    due: int
    running: int
    oldest_ms: int | None
    suspects: int


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a host has to expect. `due`: queues in which something waits that may be claimed; suspects are left out.

    `busy`: queues in which something runs, or waits as a suspect. `next_in_ms`: until the next task of any of them is
    due; None: none is to come. `expired`: some lease is over, of whatever queue; None: nobody asked.
    """

    due: frozenset[str]
    busy: frozenset[str]
    next_in_ms: int | None
    expired: bool | None


@dataclass(frozen=True, slots=True)
class WatchSignal:
    """Something may have changed. `poll` comes every `poll_ms` whether or not notifications work."""

    reason: Literal["queued", "done", "poll"]
    queue: str | None = None
    task_id: str | None = None
