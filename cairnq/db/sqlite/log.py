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

PATIENCE_MS = 500
"""How long writers stand back. Reads that overlap may take half of it: those that began before, and then those that
began while these were waited for. Each process that writes tries for itself, one after the other: the sum must be less
than what a writer waits for the lock, and than what a lease can spare.
"""

STEP_MS = 50
"""Of one wait of SQLite's: it goes on for a reader's place even where readers of the newest state, who do no harm, have
come to it. The next one sees who is there now, and begins at once, so that hardly a writer comes between.
"""

FIRST_PAUSE_S, LAST_PAUSE_S = 5.0, 60.0
"""Between two looks; longer after each try in vain, which holds up the writers of all processes."""


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
        if self._file.log_bytes() <= LARGE_BYTES or self._restart(connection, self._patience_ms()):
            self._pause = FIRST_PAUSE_S
        else:
            self._pause = min(2 * self._pause, LAST_PAUSE_S)
        self._looked_at = time.monotonic()

    def _patience_ms(self) -> int:
        """At most half of what a writer of another process waits for the lock, so that none gives up for this."""
        return min(PATIENCE_MS, int(self._file.busy_timeout_s * 500))

    def _restart(self, connection: sqlite3.Connection, patience_ms: int) -> bool:
        self.tries += 1
        deadline = time.monotonic() + patience_ms / 1000
        self._wait_at_most(connection, min(patience_ms, STEP_MS))
        statement = self._statements.get("restart_log").text
        try:
            while True:
                [(is_busy, frames, _)] = connection.execute(statement).fetchall()
                another_is_at_it = frames < 0
                if not is_busy or another_is_at_it or time.monotonic() >= deadline:
                    return not is_busy
        finally:
            self._wait_at_most(connection, 0)  # as the writer wants it

    def _wait_at_most(self, connection: sqlite3.Connection, patience_ms: int) -> None:
        connection.execute(self._statements.get("patience", (), {"patience_ms": str(patience_ms)}).text)
