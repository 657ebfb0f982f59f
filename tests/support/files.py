"""SQLite files in the place of a server's databases: made from a template, and removed."""

from __future__ import annotations

import itertools
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.cluster import storage


class SqliteFiles:
    """A folder that behaves as a `Cluster` does where tests ask for databases; a DSN is the path of a file."""

    id = "sqlite"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cairnq-sqlite-", dir=storage()))
        self._numbers = itertools.count(1)

    def dsn(self, database: str) -> str:
        return str(self.folder / database)

    def create_database(self, template: str | None = None) -> str:
        name = f"db_{next(self._numbers)}"
        if template is not None:
            shutil.copyfile(self.dsn(template), self.dsn(name))
        return name

    def freeze_database(self, name: str) -> None:
        """A closed file is as still as a frozen database."""

    def drop_database(self, name: str) -> None:
        for file in self.folder.glob(f"{name}*"):
            if file.name in (name, f"{name}-wal", f"{name}-shm"):
                file.unlink()

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


class ClockOfFiles:
    """Moves the time of each SQLite connection that this process opens after `start()`, by a `julianday` of its own."""

    def __init__(self) -> None:
        self._shift_ms = 0
        self._connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def start(self) -> None:
        sqlite3.connect = self._open  # type: ignore[assignment]

    def advance(self, ms: int) -> None:
        """Later statements see a time `ms` milliseconds later; negative steps back."""
        self._shift_ms += ms

    def close(self) -> None:
        sqlite3.connect = self._connect  # type: ignore[assignment]

    def _open(self, *args: Any, **options: Any) -> sqlite3.Connection:
        connection = self._connect(*args, **options)
        connection.create_function("julianday", 1, self._julianday)
        return connection

    def _julianday(self, when: str) -> float:
        assert when == "now"
        return (time.time_ns() // 1_000_000 + self._shift_ms) / 86_400_000 + 2_440_587.5
