"""A file of its own beside the given SQLite database: the same disk, and none of its tasks."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, TypeVar

from cairnq.client import CairnQ
from cairnq_supervisor.pure import dsn
from cairnq_supervisor.torture.ground import Ground
from cairnq_supervisor.torture.schedule import Ability

_PATIENCE_S = 30.0
_LONGEST_LOCK_S = 4.0
"""Below the time for which a write of the fleet waits: it is delayed, and not refused."""

T = TypeVar("T")


class SqliteGround(Ground):
    """One host: there are no others on a file. Writers wait for one another, and for us."""

    dialect = "sqlite"
    effects = "torture_effects"

    def __init__(self, path: Path) -> None:
        self._path = path
        self.abilities = frozenset({Ability.FILE})
        self.where = str(path)
        self.settings = {}

    def database(self, host: int | None) -> str:  # noqa: ARG002 - all take the same way
        return dsn.of_file(str(self._path))

    def client(self, host: int | None) -> CairnQ:  # noqa: ARG002 - as above
        return CairnQ.sqlite(self._path)

    async def lock(self, seconds: float) -> bool:
        enough = threading.Event()

        def hold(connection: sqlite3.Connection) -> None:
            connection.execute("begin immediate")
            enough.wait(min(seconds, _LONGEST_LOCK_S))
            connection.execute("rollback")

        try:
            await self._with(hold)
        finally:
            enough.set()
        return True

    @asynccontextmanager
    async def _reached(self) -> AsyncIterator[None]:
        yield

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=_PATIENCE_S, isolation_level=None)

    async def _with(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def run() -> T:
            with closing(self._open()) as connection:
                return work(connection)

        return await asyncio.to_thread(run)

    async def _run_script(self, text: str) -> None:
        await self._with(lambda connection: connection.executescript(text))

    async def _query(self, text: str) -> list[tuple[Any, ...]]:
        return await self._with(lambda connection: connection.execute(text).fetchall())

    async def _insert(self, text: str, rows: Sequence[tuple[Any, ...]]) -> None:
        def insert(connection: sqlite3.Connection) -> None:
            connection.execute("begin immediate")
            connection.executemany(text, rows)
            connection.execute("commit")

        await self._with(insert)

    async def _remove(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            await asyncio.to_thread(Path(f"{self._path}{suffix}").unlink, missing_ok=True)

    def _decoded(self, value: Any) -> Any:
        return None if value is None else json.loads(value)
