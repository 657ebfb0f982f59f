"""Every exception that cairnq raises, under one root."""

from __future__ import annotations

from typing import Any


class CairnQError(Exception):
    """The root of all errors of this package. They survive pickling, as a process pool does to what a call raised."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args), self.__dict__


def _restored(kind: type[CairnQError], args: tuple[Any, ...]) -> CairnQError:
    """Without `__init__`, which takes other arguments than the message it makes of them."""
    return kind.__new__(kind, *args)


class InvalidArgument(CairnQError, ValueError):
    """An argument that cannot be right, found before anything was written."""


class SerializationError(CairnQError, ValueError):
    """A value that JSON (or PostgreSQL's jsonb) cannot hold."""


class StoreClosed(CairnQError):
    """The client or worker was used after `close()`."""


class UnsupportedBackend(CairnQError):
    """This program cannot speak to that kind of database."""


# --- connecting ---------------------------------------------------------------------------------


class ConnectError(CairnQError):
    """The database could not be used as configured. The subclasses say why."""


class InvalidDsn(ConnectError, InvalidArgument):
    """The connection string does not parse."""


class DatabaseUnavailable(ConnectError):
    """Nothing answers, or it refuses now and may accept later. Worth a retry."""


class DatabaseReadOnly(ConnectError):
    """The database is in recovery (a standby), or opened read-only."""


class PermissionDenied(ConnectError):
    """The role lacks a right that this needs."""


class InvalidPath(ConnectError, InvalidArgument):
    """The path of a database file leads to no place where one can be: a directory, a folder that is not there."""


class NotADatabase(ConnectError):
    """The file is there and is no SQLite database."""


class UnsupportedFilesystem(ConnectError):
    """The file lies where SQLite's locks or shared memory do not work between processes."""


class DatabaseReplaced(ConnectError):
    """The database file was moved, deleted or replaced while it was in use."""


class InheritedDatabase(ConnectError):
    """This process was forked from one that was using the database file at that moment."""


class SchemaMismatch(ConnectError):
    """The connection resolves to another schema than configured, or cairnq already lives elsewhere in this database."""


class MigrationsPending(SchemaMismatch):
    """The tables want migrations, and this connection was told not to apply any."""


class ProtocolVersionMismatch(ConnectError):
    """The database speaks another major version of the protocol."""

    def __init__(self, found: str, expected: int) -> None:
        super().__init__(
            f"the database speaks cairnq protocol {found!r} and this program speaks {expected}; "
            f"use a program of the same major version, or another database"
        )
        self.found = found
        self.expected = expected


# --- submitting ---------------------------------------------------------------------------------


class AlreadyExists(CairnQError):
    """`conflict="reject"`: a task stands under this key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"a task already exists under key {key!r}")
        self.key = key


class QueueFull(CairnQError):
    """The queue stayed at its depth limit for as long as the submit was willing to wait."""

    def __init__(self, queue: str, max_depth: int, waited_ms: int) -> None:
        super().__init__(
            f"queue {queue!r} has {max_depth} or more tasks queued (max_queue_depth); gave up after {waited_ms} ms"
        )
        self.queue = queue
        self.max_depth = max_depth
        self.waited_ms = waited_ms


# --- waiting ------------------------------------------------------------------------------------


class TaskTimeout(CairnQError):
    """A wait ran out of time. The task runs on; wait again by `task_id`."""

    def __init__(self, message: str, *, task_id: str | None, task: Any = None, key: str | None = None) -> None:
        super().__init__(message)
        self.task_id = task_id
        self.task = task
        self.key = key


class TaskFailed(CairnQError):
    """The task that was waited for ended `failed`. The envelope's fields are attributes."""

    def __init__(self, error: Any) -> None:
        envelope = error if isinstance(error, dict) else {}
        self.error = error
        self.type = envelope.get("type")
        self.code = envelope.get("code")
        self.message = envelope.get("message")
        self.retryable = envelope.get("retryable")
        self.details = envelope.get("details")
        super().__init__(f"{self.code or 'failed'}: {self.message or repr(error)}")


class TaskCanceled(CairnQError):
    """The task that was waited for ended `canceled`."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"task {task_id} was canceled")
        self.task_id = task_id


# --- running ------------------------------------------------------------------------------------


class LostLease(CairnQError):
    """This worker no longer holds the task: the write matched no row and nothing was written."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"the lease of task {task_id} is lost; nothing was written")
        self.task_id = task_id


class EventLoopBlocked(CairnQError):
    """Reported (never raised into a handler) when a handler held the event loop for too long."""

    def __init__(self, late_ms: int, interval_ms: int, lease_ms: int) -> None:
        super().__init__(
            f"the event loop was blocked for {late_ms} ms (looked at every {interval_ms} ms, lease {lease_ms} ms): "
            f"make the handler a plain function, which runs on a thread"
        )
        self.late_ms = late_ms
        self.interval_ms = interval_ms
        self.lease_ms = lease_ms


class TaskError(CairnQError):
    """Raised by a handler to choose the envelope of its failure. Permanent unless `retryable=True`."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "task_error",
        retryable: bool = False,
        type: str = "TaskError",  # noqa: A002 - the envelope's own word
        details: Any = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.retryable = retryable
        self.type = type
        self.details = details
