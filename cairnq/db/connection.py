"""A connection of psycopg: its settings from a DSN, and the session that runs statements on it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, timeout_from_conninfo
from psycopg.rows import dict_row, tuple_row

from cairnq.db.arrays import plain
from cairnq.db.session import Row
from cairnq.pure.errors import InvalidDsn

_DEFAULTS: dict[str, Any] = {
    # Or the database's, the role's or the environment's own would decide which characters of a payload arrive.
    "client_encoding": "utf8",
    # A vanished server is noticed within 25 s while a reply is awaited (10 + 3 * 5) and 20 s while sending; libpq's
    # own defaults take hours. Each may be set in the DSN instead.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "connect_timeout": 5,
    "application_name": "cairnq",
}


def parse_dsn(dsn: str, what: str = "the database URL") -> dict[str, Any]:
    """The DSN's settings, completed with ours. Raises `InvalidDsn`, which repeats nothing that may be a password."""
    shape = "it should look like postgresql://user@host:5432/name"
    if "\x00" in dsn or not dsn.strip():
        raise InvalidDsn(f"{what} is empty or holds a NUL character; {shape}")
    try:
        given = conninfo_to_dict(dsn)
        timeout_from_conninfo(given)
    except (psycopg.ProgrammingError, UnicodeEncodeError) as error:
        reason = re.sub(r"""(["']).*\1""", '"..."', str(error).strip())
        raise InvalidDsn(f"{what} does not parse ({reason}); {shape}") from None
    if "@" in str(given.get("host", "")) or not all(map(_is_port, str(given.get("port", "")).split(","))):
        raise InvalidDsn(
            f"{what} has no valid host and port; {shape}, "
            "and in a password @ is written %40, / is %2F, : is %3A, # is %23, ? is %3F, % is %25"
        )
    return _DEFAULTS | given


def _is_port(text: str) -> bool:
    return not text or (text.isascii() and text.isdigit() and 0 < int(text) < 65_536)


class PsycopgSession:
    """One psycopg connection as a session. Raw cursors: `$1` placeholders, and no rewriting of the text per call."""

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        self._connection = connection

    async def rows(self, text: str, values: Sequence[Any]) -> list[Row]:
        async with psycopg.AsyncRawCursor(self._connection, row_factory=tuple_row) as cursor:
            await cursor.execute(text.encode(), plain(values))
            return await _fetched(cursor)

    async def together(self, asked: Sequence[tuple[str, Sequence[Any]]]) -> list[list[Row]]:
        """Several statements in one round trip and one transaction: all of them happen, or none does.

        For a connection in autocommit mode alone: the server commits at the one Sync that ends the pipeline.
        """
        cursors = []
        try:
            async with self._connection.pipeline():
                for text, values in asked:
                    cursor = psycopg.AsyncRawCursor(self._connection, row_factory=tuple_row)
                    await cursor.execute(text.encode(), plain(values))
                    cursors.append(cursor)
        except psycopg.errors.PipelineAborted as aborted:
            raise _cause_of(aborted) from None
        return [await _fetched(cursor) for cursor in cursors]

    async def read_committed(self, text: str, values: Sequence[Any]) -> list[Row]:
        """One statement in a transaction that says so, in one round trip: where the server's default is another."""
        asked = [("begin isolation level read committed", ()), (text, values), ("commit", ())]
        try:
            return (await self.together(asked))[1]
        except psycopg.Error:
            await self._connection.rollback()  # what failed was skipped to its end, the commit too
            raise

    async def query(self, text: str, values: Sequence[Any]) -> list[Any]:
        """Rows as dictionaries, for the caller's own statements."""
        async with psycopg.AsyncRawCursor(self._connection, row_factory=dict_row) as cursor:
            await cursor.execute(text.encode(), values)
            return [] if cursor.description is None else await cursor.fetchall()

    async def execute(self, sql: str) -> None:
        """Any number of statements, without parameters."""
        async with psycopg.AsyncRawCursor(self._connection) as cursor:
            await cursor.execute(sql.encode(), prepare=False)


async def _fetched(cursor: psycopg.AsyncRawCursor[Row]) -> list[Row]:
    """Not by way of `cursor.description`, which makes an object of each column."""
    result = cursor.pgresult
    return [] if result is None or not result.nfields else await cursor.fetchall()


def _cause_of(aborted: psycopg.errors.PipelineAborted) -> BaseException:
    """What the first statement failed with, where psycopg tells of those behind it, which were skipped."""
    error: BaseException = aborted
    while isinstance(error, psycopg.errors.PipelineAborted) and error.__context__ is not None:
        error = error.__context__
    return error
