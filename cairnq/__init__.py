"""cairnq: a durable task queue in a database.

`CairnQ` submits tasks and waits for them, `Worker` runs them, `Registry` holds handlers without a database.
"""

from cairnq.client import CairnQ
from cairnq.db.session import PgExecutor, PgSession
from cairnq.pure.errors import (
    AlreadyExists,
    CairnQError,
    ConnectError,
    DatabaseReadOnly,
    DatabaseReplaced,
    DatabaseUnavailable,
    EventLoopBlocked,
    InheritedDatabase,
    InvalidArgument,
    InvalidDsn,
    InvalidPath,
    LostLease,
    MigrationsPending,
    NotADatabase,
    PermissionDenied,
    ProtocolVersionMismatch,
    QueueFull,
    SchemaMismatch,
    SerializationError,
    StoreClosed,
    TaskCanceled,
    TaskError,
    TaskFailed,
    TaskTimeout,
    UnsupportedBackend,
    UnsupportedFilesystem,
)
from cairnq.pure.models import (
    STATUSES,
    Beat,
    Conflict,
    Held,
    Outcome,
    Settlement,
    Standing,
    Task,
    TaskDef,
    TaskRef,
    TaskStatus,
    WatchSignal,
    is_terminal_status,
)
from cairnq.run.blocking import BlockingContext
from cairnq.run.context import TaskContext
from cairnq.run.registry import Registry
from cairnq.store.base import Installation, TaskStore
from cairnq.store.postgres import PostgresStore
from cairnq.store.retention import Retention
from cairnq.store.sqlite import SqliteStore
from cairnq.worker import Worker

__all__ = [
    "STATUSES",
    "AlreadyExists",
    "Beat",
    "BlockingContext",
    "CairnQ",
    "CairnQError",
    "Conflict",
    "ConnectError",
    "DatabaseReadOnly",
    "DatabaseReplaced",
    "DatabaseUnavailable",
    "EventLoopBlocked",
    "Held",
    "InheritedDatabase",
    "Installation",
    "InvalidArgument",
    "InvalidDsn",
    "InvalidPath",
    "LostLease",
    "MigrationsPending",
    "NotADatabase",
    "Outcome",
    "PermissionDenied",
    "PgExecutor",
    "PgSession",
    "PostgresStore",
    "ProtocolVersionMismatch",
    "QueueFull",
    "Registry",
    "Retention",
    "SchemaMismatch",
    "SerializationError",
    "Settlement",
    "SqliteStore",
    "Standing",
    "StoreClosed",
    "Task",
    "TaskCanceled",
    "TaskContext",
    "TaskDef",
    "TaskError",
    "TaskFailed",
    "TaskRef",
    "TaskStatus",
    "TaskStore",
    "TaskTimeout",
    "UnsupportedBackend",
    "UnsupportedFilesystem",
    "WatchSignal",
    "Worker",
    "is_terminal_status",
]
