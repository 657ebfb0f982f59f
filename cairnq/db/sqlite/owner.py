"""Owns one connection to the file, for the thread it is used on, and has none while the process forks."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable

from cairnq.db.sqlite import forks
from cairnq.db.sqlite.file import DatabaseFile
from cairnq.pure.errors import DatabaseUnavailable


class Owner:
    def __init__(self, file: DatabaseFile) -> None:
        self._file = file
        self._connection: sqlite3.Connection | None = None
        self._renew()

    def _renew(self) -> None:
        """As it is at first, and again in a forked child."""
        self._guard = threading.Lock()  # held while the connection is in use
        self._thread: threading.Thread | None = None

    def suspend(self, timeout_s: float) -> bool:
        """Close the connection and keep the thread from opening another, until `resume`; False: it is in use."""
        if not self._guard.acquire(timeout=timeout_s):
            return False
        self._close()
        return True

    def resume(self) -> None:
        self._guard.release()

    def begin_anew(self) -> None:
        """In a forked child: the thread is the parent's, and so is a connection that could not be closed."""
        if self._connection is not None:
            forks.carry(self._connection, self._file.path)
            self._connection = None
        self._renew()

    def _start_thread(self, run: Callable[[], None], name: str) -> None:
        """Daemonic: what is committed needs no farewell."""
        thread = threading.Thread(target=run, name=f"cairnq sqlite {name}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the system has no thread left; whoever waits may try again
            raise DatabaseUnavailable(f"no thread for the database: {error}") from error
        self._thread = thread

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
