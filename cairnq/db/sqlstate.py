"""What an exception of a database driver means for us. The only place that looks at a SQLSTATE."""

from __future__ import annotations

import re

import psycopg
import psycopg_pool

from cairnq.db.fault import Fault
from cairnq.db.sqlite import faults as sqlite_faults
from cairnq.pure.errors import (
    CairnQError,
    ConnectError,
    DatabaseReadOnly,
    DatabaseUnavailable,
    InvalidArgument,
    PermissionDenied,
)

# https://www.postgresql.org/docs/current/errcodes-appendix.html
_RETRY = frozenset({"40001", "40P01", "55P03", "57014"})
_GONE = frozenset({"25P03", "25P04", "40003", "57P01", "57P02", "57P03", "57P05", "58030"})
_GONE_CLASSES = frozenset({"08", "53"})  # 53: disk, memory or connections used up, which passes as an outage does
_CONFIGURATION = frozenset({"25006", "3D000", "3F000", "42501", "42939", "42P01", "28000", "28P01"})
_DATA_CLASSES = frozenset({"22", "23", "54"})
_PREPARED_ELSEWHERE = frozenset({"26000", "42P05"})
_LINE_END = re.compile(r"\s*\n\s*")

_CONNECT_REFUSALS = re.compile(
    r"authentication failed|no password supplied|does not exist|pg_hba\.conf|not permitted to log in"
    "|permission denied for database|does not support SSL|authentication method requirement|channel binding required"
    "|invalid .* value|invalid value for|invalid port number|unrecognized configuration parameter"
    "|unsupported startup parameter|definition of service"
)
"""Of a failed connection attempt libpq tells the message alone (no SQLSTATE); these are no outage."""


def sqlstate_of(error: BaseException) -> str | None:
    """Of psycopg's errors, of other drivers' (asyncpg names it the same), and of ours that stand for them."""
    if isinstance(error, CairnQError) and error.__cause__ is not None:
        return sqlstate_of(error.__cause__)
    state = getattr(error, "sqlstate", None)
    return state if isinstance(state, str) else None


def classify(error: BaseException) -> Fault:
    if sqlite_faults.is_sqlite(error):
        return sqlite_faults.classify(error)
    state = sqlstate_of(error)
    if state is not None:
        return _classify_state(state)
    if isinstance(error, DatabaseUnavailable):
        return Fault.GONE
    if isinstance(error, ConnectError):
        return Fault.CONFIGURATION
    if isinstance(error, psycopg.OperationalError) and _CONNECT_REFUSALS.search(str(error)):
        return Fault.CONFIGURATION
    if isinstance(
        error,
        (psycopg.OperationalError, psycopg.InterfaceError, psycopg_pool.PoolTimeout, psycopg_pool.PoolClosed, OSError),
    ):
        return Fault.GONE
    if isinstance(error, (psycopg.DataError, UnicodeEncodeError)):  # raised by psycopg, before anything was sent
        return Fault.DATA
    return Fault.BUG


def _classify_state(state: str) -> Fault:
    if state in _RETRY:
        return Fault.RETRY
    if state in _GONE or state[:2] in _GONE_CLASSES:
        return Fault.GONE
    if state in _CONFIGURATION or state in _PREPARED_ELSEWHERE:
        return Fault.CONFIGURATION
    if state[:2] in _DATA_CLASSES:
        return Fault.DATA
    return Fault.BUG


def translate(error: BaseException) -> BaseException:
    """The error of ours that stands for a driver's error; the error itself where there is none."""
    if isinstance(error, CairnQError):
        return error
    if sqlite_faults.is_sqlite(error):
        return sqlite_faults.translate(error)
    fault = classify(error)
    message = _LINE_END.sub("; ", str(error).strip())
    if sqlstate_of(error) == "25006":
        return DatabaseReadOnly(f"the database is in recovery or read-only: {message}")
    if sqlstate_of(error) == "42501" or "permission denied for database" in message:
        return PermissionDenied(f"the role lacks a right: {message}")
    if sqlstate_of(error) in _PREPARED_ELSEWHERE:
        return ConnectError(
            f"a prepared statement is not where it was made ({message}): the database URL seems to go through a "
            "transaction pooler; say so with listen_database="
        )
    if sqlstate_of(error) == "53200":
        return DatabaseUnavailable(
            f"the database has no memory or no locks left for this: {message}; split a batch of keys, "
            "for each is a lock until its transaction ends, or raise the server's max_locks_per_transaction"
        )
    if fault is Fault.GONE:
        return DatabaseUnavailable(f"the database cannot be reached: {message}")
    if fault is Fault.CONFIGURATION:
        return ConnectError(f"the database cannot be used as configured: {message}")
    if fault is Fault.DATA:
        return InvalidArgument(f"the database refuses a value: {message}")
    return error
