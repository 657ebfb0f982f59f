"""Statements of ours on connections of ours: prepared once on each, then handed to libpq without a cursor.

psycopg's cursor learns anew with each call what it is asked, which costs more than all else that a client does for a
short statement. Errors, notices and what a cancellation does are psycopg's as ever.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import psycopg
from psycopg import AsyncConnection, abc, generators
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from cairnq.db.arrays import plain
from cairnq.db.session import Row


class PreparedStatements:
    """On connections in autocommit mode, and direct: behind a pooler nothing may be prepared."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[AsyncConnection[Any], _Known] = WeakKeyDictionary()

    async def rows(self, connection: AsyncConnection[Any], text: str, values: Sequence[Any]) -> list[Row]:
        """Run it, in a transaction of its own. There must be a bounded number of texts: none is ever dropped."""
        try:
            return await self._run(connection, text, values)
        except psycopg.errors.InvalidSqlStatementName:
            self.forget(connection)
            return await self._run(connection, text, values)

    def forget(self, connection: AsyncConnection[Any]) -> None:
        """With a rollback psycopg drops whatever the session has prepared, ours with its own."""
        self._known.pop(connection, None)

    async def _run(self, connection: AsyncConnection[Any], text: str, values: Sequence[Any]) -> list[Row]:
        known = self._known.get(connection)
        if known is None:
            known = self._known[connection] = _Known({}, Transformer())
        parameters = known.transformer.dump_sequence(plain(values), [PyFormat.TEXT] * len(values))
        async with connection.lock:
            if text not in known.names:
                known.names[text] = await _prepared(connection, text)
            connection.pgconn.send_query_prepared(known.names[text], parameters)
            result = await _answer(connection)
        known.transformer.set_pgresult(result)
        try:
            return known.transformer.load_rows(0, result.ntuples, tuple)
        finally:
            known.transformer.set_pgresult(None)  # or the last claim's payloads would stay, and nobody count them


class _Known(NamedTuple):
    """Of one connection, which it must not hold: it goes when that does."""

    names: dict[str, bytes]
    transformer: abc.Transformer
    """It turns values into parameters and columns into values, and remembers how: in UTF-8, as each session of ours."""


async def _prepared(connection: AsyncConnection[Any], text: str) -> bytes:
    """Its name, which is made of the text: wherever it is known it is known for this text."""
    name = b"cairnq_" + sha256(text.encode()).hexdigest()[:16].encode()
    connection.pgconn.send_prepare(name, text.encode())
    with contextlib.suppress(psycopg.errors.DuplicatePreparedStatement):
        await _answer(connection)
    return name


async def _answer(connection: AsyncConnection[Any]) -> PGresult:
    results: list[PGresult] = await connection.wait(generators.execute(connection.pgconn))
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(result, encoding=connection.info.encoding)
    return results[-1]
