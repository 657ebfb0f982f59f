"""One database file as this process uses it: how connections to it are made, and whether it is still the same file."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from cairnq.db.sqlite import faults, forks
from cairnq.db.sqlite.script import split_script
from cairnq.db.statements import Statements
from cairnq.pure.errors import DatabaseReplaced, DatabaseUnavailable, UnsupportedFilesystem

BUSY_PAUSE_S = 0.005


class DatabaseFile:
    """Opens connections and watches the file's identity.

    The file itself is never opened here but by SQLite: closing any descriptor of it would drop the locks that
    SQLite holds for this whole process. A `stat` of the path is all that looks at it.
    """

    def __init__(self, path: str | os.PathLike[str], *, busy_timeout_s: float) -> None:
        self.path = os.path.realpath(os.fspath(path))
        self.busy_timeout_s = busy_timeout_s
        self._identity: tuple[int, int] | None = None

    def connect(self, *, writes: bool, create: bool = False) -> sqlite3.Connection:
        """A connection for one thread at a time. One that `writes` waits for no lock: its user does that by itself."""
        forks.check_usable(self.path)
        mode = "rwc" if create else "rw"
        connection = sqlite3.connect(
            f"file:{quote(self.path)}?mode={mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            timeout=self.busy_timeout_s,
        )
        try:
            settings = Statements("sqlite", None).get("connection", [] if writes else ["reads"])
            for pragma in split_script(settings.text):
                connection.execute(pragma)
            self._recognise()
        except BaseException:
            connection.close()
            raise
        return connection

    def prepare(self, *, create: bool) -> None:
        """Make the file if it is not there, and let it log ahead, for as long as it is busy up to the time-out."""
        deadline = time.monotonic() + self.busy_timeout_s
        statement = Statements("sqlite", None).get("install/journal").text
        with closing(self.connect(writes=True, create=create)) as connection:
            mode = None
            while mode is None:
                try:
                    mode = connection.execute(statement).fetchone()[0]
                except sqlite3.OperationalError as error:
                    if not faults.is_busy(error) or time.monotonic() >= deadline:
                        raise
                    time.sleep(BUSY_PAUSE_S)
        if mode != "wal":
            raise UnsupportedFilesystem(
                f"{self.path} cannot have a write-ahead log (its journal stays {mode!r}): put it on a local disk"
            )

    def log_bytes(self) -> int:
        """The size of the write-ahead log; 0 where it cannot be told, which whoever writes next will hear of."""
        try:
            return Path(f"{self.path}-wal").stat().st_size
        except OSError:
            return 0

    def check_in_place(self) -> None:
        """Raises `DatabaseReplaced` if the path no longer leads to the file that the connections have open."""
        if self._identity is not None and self._identity != self._look():
            raise DatabaseReplaced(
                f"{self.path} is no longer the file that was opened (moved, deleted or replaced): "
                "what is written now would be lost with it; put it back, or start again"
            )

    def _recognise(self) -> None:
        if self._identity is None:
            self._identity = self._look()
        else:
            self.check_in_place()

    def _look(self) -> tuple[int, int]:
        try:
            found = Path(self.path).stat()
        except FileNotFoundError:
            return (0, 0)
        except OSError as error:
            raise DatabaseUnavailable(f"{self.path} cannot be looked at: {error.strerror}") from error
        return (found.st_dev, found.st_ino)
