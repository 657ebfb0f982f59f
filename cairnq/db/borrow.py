"""A session over a connection that the caller lends for one call: their transaction, their connection, never closed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import psycopg

from cairnq.db.blocking import LentForeign, LentPsycopg, LentSqlite
from cairnq.db.connection import PsycopgSession
from cairnq.db.session import ForeignSession, Session
from cairnq.pure.errors import InvalidArgument


@asynccontextmanager
async def borrow(given: Any, *, transaction: bool) -> AsyncIterator[Session]:
    """`transaction`: what follows needs one; a psycopg connection in autocommit mode gets one for as long as this."""
    _refuse_pipeline(given)
    if isinstance(given, (LentPsycopg, LentForeign)):
        with given.in_transaction() if transaction else nullcontext():
            yield given
        return
    if isinstance(given, LentSqlite):
        raise InvalidArgument("session is a connection to SQLite, and the tasks are in PostgreSQL")
    session = _as_session(given)
    if transaction and _outside_transaction(given):
        async with given.transaction():
            yield session
    else:
        yield session


def _refuse_pipeline(given: Any) -> None:
    """Before anything is sent: replies come at the pipeline's end, and what was sent happens, whatever we raise."""
    connection = given.connection if isinstance(given, LentPsycopg) else given
    if not isinstance(connection, (psycopg.Connection, psycopg.AsyncConnection)):
        return
    if connection.info.pipeline_status is not psycopg.pq.PipelineStatus.OFF:
        raise InvalidArgument(
            "session is a connection in pipeline mode, whose replies come too late for a submit: "
            "submit before its pipeline() block or after it, in the same transaction"
        )


def _as_session(given: Any) -> Session:
    if isinstance(given, psycopg.AsyncConnection):
        return PsycopgSession(given)
    if isinstance(given, (PsycopgSession, ForeignSession)):
        return given
    if hasattr(given, "query"):
        return ForeignSession(given)
    elsewhere = " (cairnq.sync.CairnQ takes one that blocks)" if isinstance(given, psycopg.Connection) else ""
    raise InvalidArgument(
        "session must be a psycopg AsyncConnection or an object with query(text, values) and execute(sql), "
        f"not {type(given).__name__}{elsewhere}"
    )


def _outside_transaction(given: Any) -> bool:
    """Whether each statement on it would be a transaction of its own."""
    return (
        isinstance(given, psycopg.AsyncConnection)
        and given.autocommit
        and given.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
    )
