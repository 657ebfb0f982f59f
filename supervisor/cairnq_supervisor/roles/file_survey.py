"""A look at an SQLite file that changes nothing: what `check` and `doctor` judge, and what `migrate` compares."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from cairnq.db.sqlite.executor import SqliteExecutor
from cairnq.db.sqlite.file import DatabaseFile
from cairnq.db.sqlite.mounts import filesystem_of
from cairnq.db.statements import Statements
from cairnq.store.installing import LEDGER_PREFIX, OTHER_SDKS_LEDGER
from cairnq.store.runner import BoundSession, raise_translated
from cairnq.store.sqlite_file import SCHEMA, check_place, check_version

_BUSY_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class FileSurvey:
    """`size`: bytes; None: the file is not there yet. `ledger`: names of migrations, empty where there is none."""

    path: str
    version: str
    filesystem: str | None
    size: int | None
    ledger: tuple[str, ...]

    @property
    def ours(self) -> tuple[str, ...]:
        return tuple(name for name in self.ledger if name.startswith(LEDGER_PREFIX))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Migrations of an SDK that is newer than what this program knows."""
        return tuple(name for name in self.ledger if name not in OTHER_SDKS_LEDGER and name not in self.ours)


async def survey_file(given: str) -> FileSurvey:
    """Raises the `CairnQError` that says why there can be no database at this path, or why it cannot be read."""
    check_version(sqlite3.sqlite_version_info)
    file = DatabaseFile(given, busy_timeout_s=_BUSY_TIMEOUT_S)
    path = Path(file.path)
    await asyncio.to_thread(check_place, path)
    size = await asyncio.to_thread(_size, path)
    return FileSurvey(
        path=file.path,
        version=sqlite3.sqlite_version,
        filesystem=filesystem_of(file.path),
        size=size,
        ledger=await _ledger(file) if size else (),
    )


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


async def _ledger(file: DatabaseFile) -> tuple[str, ...]:
    executor = SqliteExecutor(file)
    try:
        async with executor.autocommit() as session:
            bound = BoundSession(session, Statements("sqlite", SCHEMA))
            if not (await bound.rows("install/ledger_exists", schema=SCHEMA))[0][0]:
                return ()
            return tuple(row[0] for row in await bound.rows("install/ledger_read"))
    except Exception as error:  # noqa: BLE001 - raised again, as ours
        raise_translated(error)
    finally:
        await executor.close()
