"""What an exception of `sqlite3` means for us. The only place that looks at SQLite's result codes."""

from __future__ import annotations

import sqlite3

from cairnq.db.fault import Fault
from cairnq.pure.errors import (
    CairnQError,
    ConnectError,
    DatabaseReadOnly,
    DatabaseReplaced,
    DatabaseUnavailable,
    InvalidArgument,
    NotADatabase,
    PermissionDenied,
)

# https://www.sqlite.org/rescode.html; the low byte of an extended code is its primary one.
_FAULTS = {
    sqlite3.SQLITE_BUSY: Fault.RETRY,
    sqlite3.SQLITE_LOCKED: Fault.RETRY,
    sqlite3.SQLITE_INTERRUPT: Fault.RETRY,
    sqlite3.SQLITE_PROTOCOL: Fault.RETRY,  # a race for the write-ahead log's start
    sqlite3.SQLITE_SCHEMA: Fault.RETRY,
    sqlite3.SQLITE_CANTOPEN: Fault.GONE,
    sqlite3.SQLITE_FULL: Fault.GONE,
    sqlite3.SQLITE_IOERR: Fault.GONE,
    sqlite3.SQLITE_NOMEM: Fault.GONE,
    sqlite3.SQLITE_AUTH: Fault.CONFIGURATION,
    sqlite3.SQLITE_CORRUPT: Fault.CONFIGURATION,
    sqlite3.SQLITE_NOTADB: Fault.CONFIGURATION,
    sqlite3.SQLITE_PERM: Fault.CONFIGURATION,
    sqlite3.SQLITE_READONLY: Fault.CONFIGURATION,
    sqlite3.SQLITE_CONSTRAINT: Fault.DATA,
    sqlite3.SQLITE_MISMATCH: Fault.DATA,
    sqlite3.SQLITE_TOOBIG: Fault.DATA,
}


def is_sqlite(error: BaseException) -> bool:
    return isinstance(error, sqlite3.Error)


def code_of(error: BaseException) -> int:
    """The extended result code; 0 for what Python's module raised by itself."""
    return getattr(error, "sqlite_errorcode", 0)


def is_busy(error: BaseException) -> bool:
    return code_of(error) & 0xFF == sqlite3.SQLITE_BUSY


def classify(error: BaseException) -> Fault:
    code = code_of(error)
    if code & 0xFF == sqlite3.SQLITE_ERROR and "no such table" in str(error):
        return Fault.CONFIGURATION
    if isinstance(error, sqlite3.DataError):
        return Fault.DATA
    return _FAULTS.get(code & 0xFF, Fault.BUG)


def translate(error: BaseException) -> BaseException:
    """The error of ours that stands for it; the error itself where there is none."""
    code, text = code_of(error), str(error)
    match code & 0xFF:
        case sqlite3.SQLITE_READONLY if code == sqlite3.SQLITE_READONLY_DBMOVED:
            return DatabaseReplaced(f"the database file was moved or deleted while it was open: {text}")
        case sqlite3.SQLITE_READONLY:
            return DatabaseReadOnly(f"the database file cannot be written: {text}")
        case sqlite3.SQLITE_NOTADB:
            return NotADatabase(f"the file is not an SQLite database: {text}")
        case sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return PermissionDenied(f"SQLite lacks a right: {text}")
        case sqlite3.SQLITE_FULL:
            return DatabaseUnavailable(
                f"the disk is full, or the file has reached its max_page_count: {text}; nothing of this write was kept"
            )
    return _translate_fault(classify(error), error, text)


def _translate_fault(fault: Fault, error: BaseException, text: str) -> BaseException:
    ours: dict[Fault, type[CairnQError]] = {
        Fault.GONE: DatabaseUnavailable,
        Fault.CONFIGURATION: ConnectError,
        Fault.DATA: InvalidArgument,
    }
    words = {
        Fault.GONE: "the database file cannot be reached",
        Fault.CONFIGURATION: "the database cannot be used as it is",
        Fault.DATA: "the database refuses a value",
    }
    return ours[fault](f"{words[fault]}: {text}") if fault in ours else error
