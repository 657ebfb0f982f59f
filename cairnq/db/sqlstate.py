"""What an exception of a database driver means for us. The only place that looks at a SQLSTATE."""

from __future__ import annotations

from enum import StrEnum

import psycopg
import psycopg_pool

from cairnq.pure.errors import (
    CairnQError,
    ConnectError,
    DatabaseReadOnly,
    DatabaseUnavailable,
    InvalidArgument,
    PermissionDenied,
)


class Fault(StrEnum):
    RETRY = "retry"  # the statement did not happen; the connection is fine; the same statement may succeed now
    GONE = "gone"  # no connection, or none any more; whether the statement happened is unknown
    CONFIGURATION = "configuration"  # rights, schema, a standby: no retry helps until somebody changes something
    DATA = "data"  # a value that this database refuses
    BUG = "bug"  # ours


# https://www.postgresql.org/docs/current/errcodes-appendix.html
_RETRY = frozenset({"40001", "40P01", "55P03", "57014"})
_GONE = frozenset({"25P03", "25P04", "53300", "57P01", "57P02", "57P03", "57P05", "58030"})
_CONFIGURATION = frozenset({"25006", "3D000", "3F000", "42501", "42P01", "28000", "28P01"})
_DATA_CLASSES = frozenset({"22", "23", "54"})

_CONNECT_REFUSALS = ("password authentication failed", "does not exist", "no pg_hba.conf entry", "no password supplied")
"""Of a failed connection attempt libpq tells the message alone (no SQLSTATE); these are no outage."""


def sqlstate_of(error: BaseException) -> str | None:
    """Of psycopg's errors and of other drivers' (asyncpg names the attribute the same)."""
    state = getattr(error, "sqlstate", None)
    return state if isinstance(state, str) else None


def classify(error: BaseException) -> Fault:
    state = sqlstate_of(error)
    if state is not None:
        return _classify_state(state)
    if isinstance(error, DatabaseUnavailable):
        return Fault.GONE
    if isinstance(error, ConnectError):
        return Fault.CONFIGURATION
    if isinstance(error, psycopg.OperationalError) and any(text in str(error) for text in _CONNECT_REFUSALS):
        return Fault.CONFIGURATION
    if isinstance(
        error,
        (psycopg.OperationalError, psycopg.InterfaceError, psycopg_pool.PoolTimeout, psycopg_pool.PoolClosed, OSError),
    ):
        return Fault.GONE
    if isinstance(error, psycopg.DataError):  # raised by psycopg itself, before anything was sent
        return Fault.DATA
    return Fault.BUG


def _classify_state(state: str) -> Fault:
    if state in _RETRY:
        return Fault.RETRY
    if state in _GONE or state.startswith("08"):
        return Fault.GONE
    if state in _CONFIGURATION:
        return Fault.CONFIGURATION
    if state[:2] in _DATA_CLASSES:
        return Fault.DATA
    return Fault.BUG


def translate(error: BaseException) -> BaseException:
    """The error of ours that stands for a driver's error; the error itself where there is none."""
    if isinstance(error, CairnQError):
        return error
    fault = classify(error)
    message = str(error).strip()
    if sqlstate_of(error) == "25006":
        return DatabaseReadOnly(f"the database is in recovery or read-only: {message}")
    if sqlstate_of(error) == "42501":
        return PermissionDenied(f"the role lacks a right: {message}")
    if fault is Fault.GONE:
        return DatabaseUnavailable(f"the database cannot be reached: {message}")
    if fault is Fault.CONFIGURATION:
        return ConnectError(f"the database cannot be used as configured: {message}")
    if fault is Fault.DATA:
        return InvalidArgument(f"the database refuses a value: {message}")
    return error
