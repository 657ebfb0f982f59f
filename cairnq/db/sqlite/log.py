"""Keeps the write-ahead log from growing without end where reads overlap.

SQLite copies the log into the file by itself, but begins it anew only at a moment when nobody reads from it: reads that
overlap leave no such moment. Then writers have to stand back until those who read an older state have ended.
"""

from __future__ import annotations

import sqlite3
import time

from cairnq.db.sqlite.file import DatabaseFile
from cairnq.db.statements import Statements

LARGE_BYTES = 64 * 1024 * 1024
"""Where it begins. SQLite cuts a log that begins anew to the same size (`journal_size_limit`)."""

FIRST_PATIENCE_MS, MOST_PATIENCE_MS = 500, 1000
"""How long writers stand back: as many times the first as the log is times too large."""

FIRST_PAUSE_S, LAST_PAUSE_S = 5.0, 60.0
"""Between two looks, and from one try that failed to the next: each try holds up the writers of all processes."""


class LogKeeper:
    """Of one writer, and used on its thread."""

    def __init__(self, file: DatabaseFile) -> None:
        self._file = file
        self._statements = Statements("sqlite", None)
        self._looked_at: float | None = None
        self._pause = FIRST_PAUSE_S
        self.tries = 0

    def keep_short(self, connection: sqlite3.Connection) -> None:
        """Outside of transactions, now and then. Raises what SQLite raises, but not where readers stay too long."""
        now = time.monotonic()
        if self._looked_at is not None and now - self._looked_at < self._pause:
            return
        size = self._file.log_bytes()
        has_begun_anew = size <= LARGE_BYTES or self._restart(connection, self._patience_ms(size))
        self._pause = FIRST_PAUSE_S if has_begun_anew else min(2 * self._pause, LAST_PAUSE_S)
        self._looked_at = time.monotonic()

    def _patience_ms(self, size: int) -> int:
        """At most half of what a writer of another process waits for the lock, so that none gives up for this."""
        patience = min(size // LARGE_BYTES * FIRST_PATIENCE_MS, MOST_PATIENCE_MS)
        return min(patience, int(self._file.busy_timeout_s * 500))

    def _restart(self, connection: sqlite3.Connection, patience_ms: int) -> bool:
        self.tries += 1
        self._wait_at_most(connection, patience_ms)
        try:
            [(is_busy, *_)] = connection.execute(self._statements.get("restart_log").text).fetchall()
        finally:
            self._wait_at_most(connection, 0)  # as the writer wants it
        return not is_busy

    def _wait_at_most(self, connection: sqlite3.Connection, patience_ms: int) -> None:
        connection.execute(self._statements.get("patience", (), {"patience_ms": str(patience_ms)}).text)
