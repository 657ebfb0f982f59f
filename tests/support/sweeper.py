"""Drops databases while the tests go on: ending their sessions may take the server a tenth of a second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import pq, sql


class Sweeper:
    """One statement is under way at a time; its answer is awaited before the next is sent. No thread is needed."""

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]]) -> None:
        self._connect = connect
        self._connection: psycopg.Connection[Any] | None = None

    def drop(self, database: str) -> None:
        """Returns at once. Raises if the drop before this one failed."""
        self._await_answer()
        if self._connection is None or self._connection.closed:
            self._connection = self._connect()
        statement = sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(database))
        self._connection.pgconn.send_query(statement.as_bytes(self._connection))

    def close(self) -> None:
        self._await_answer()
        if self._connection is not None:
            self._connection.close()

    def _await_answer(self) -> None:
        if self._connection is None:
            return
        while (result := self._connection.pgconn.get_result()) is not None:
            # A server that a test has stopped takes its databases' fate into its own hands.
            if result.status != pq.ExecStatus.COMMAND_OK and not self._connection.closed:
                raise psycopg.DatabaseError(result.error_message.decode())
