"""The connect-time checks on SQLite: a path that can hold a database, the ledger's migrations, the protocol version."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from pathlib import Path

from cairnq.db.session import Executor
from cairnq.db.sqlite.file import DatabaseFile
from cairnq.db.sqlite.mounts import filesystem_of
from cairnq.db.statements import Statements
from cairnq.pure.errors import (
    ConnectError,
    DatabaseReadOnly,
    InvalidPath,
    MigrationsPending,
    PermissionDenied,
    UnsupportedFilesystem,
)
from cairnq.pure.models import PROTOCOL_VERSION
from cairnq.store.base import Installation
from cairnq.store.installing import InstallationChecks
from cairnq.store.runner import BoundSession

SCHEMA = "main"
"""What SQLite calls the database of a file."""

OLDEST_SQLITE = (3, 35, 0)
"""The first with `returning`. Python 3.11 is built with an older one on some distributions of 2020 and 2021."""

NETWORK_FILESYSTEMS = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "coda", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4"}
    | {"ocfs2", "orangefs", "smb3", "smbfs"}
    | {"fuse.ceph", "fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"}
)
"""Where locks or shared memory do not reach every process that has the file open; the write-ahead log needs both."""


class FileChecks(InstallationChecks):
    """One run of the checks of one file. With `migrate` it is made where it is not there."""

    def __init__(self, executor: Executor, file: DatabaseFile, *, migrate: bool) -> None:
        super().__init__(executor, migrate=migrate)
        self._file = file

    async def run(self) -> Installation:
        check_version(sqlite3.sqlite_version_info)
        await asyncio.to_thread(check_place, Path(self._file.path))
        await asyncio.to_thread(self._make_file)
        await self._bring_up_to_date(SCHEMA, self._file.path)
        await self._check_protocol(SCHEMA)
        await self._gather_statistics()
        return Installation(SCHEMA, PROTOCOL_VERSION)

    def _make_file(self) -> None:
        if not self._migrate and not Path(self._file.path).exists():
            raise MigrationsPending(f"{self._file.path} does not exist and migrate is off: run `cairnq migrate` first")
        self._file.prepare(create=self._migrate)

    async def _lock_ledger(self, bound: BoundSession, schema: str) -> None:  # noqa: ARG002 - there is one
        """A transaction of ours is the file's only writer from its first moment."""
        await bound.rows("install/ledger_create")

    async def _gather_statistics(self) -> None:
        """On tasks that never had any. Where there are no tasks yet, the writer's timer does it later."""
        if not self._migrate:
            return
        async with self._executor.autocommit() as session:
            bound = BoundSession(session, Statements(self._dialect, SCHEMA))
            if not (await bound.rows("install/tasks_exist"))[0][0]:
                return
            exist = (await bound.rows("install/statistics_exist"))[0][0]
            if not exist or not (await bound.rows("install/tasks_analyzed"))[0][0]:
                await bound.rows("install/analyze")


def check_version(version: tuple[int, ...]) -> None:
    if version < OLDEST_SQLITE:
        raise ConnectError(
            f"SQLite {'.'.join(map(str, version))} is too old: this program needs {'.'.join(map(str, OLDEST_SQLITE))} "
            "or newer (a Python from python.org, uv or conda brings its own)"
        )


def check_given(path: str | os.PathLike[str]) -> None:
    """What can be told from the path alone."""
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidPath(f"the path of the database must be a string or a path, not {type(path).__name__}")
    text = os.fspath(path)
    if not text or "\x00" in text:
        raise InvalidPath(f"the path of the database is empty or holds a NUL character: {text!r}")
    if text == ":memory:" or text.startswith(("file:", "sqlite:")):
        raise InvalidPath(
            f"the database must be the plain path of a file, not {text!r}: every connection and every process must "
            "find the same one (for a throw-away database take a file in a temporary folder)"
        )


def check_place(path: Path) -> None:
    """Whether a database can be at `path`. Never opens it: see `DatabaseFile`."""
    try:
        _check_kind(path)
    except PermissionError as error:
        raise PermissionDenied(f"user {os.geteuid()} may not look into {path.parent}: {error.strerror}") from error
    _check_filesystem(path)
    _check_rights(path, path.parent)


def _check_kind(path: Path) -> None:
    folder = path.parent
    if not folder.is_dir():
        raise InvalidPath(f"the folder {folder} of the database {path.name!r} does not exist: make it, or fix the path")
    if path.is_dir():
        raise InvalidPath(f"{path} is a directory: name a file inside it, such as {path / 'cairnq.db'}")
    if path.exists() and not path.is_file():
        raise InvalidPath(f"{path} is neither a file nor missing: a database needs a plain file")


def _check_rights(path: Path, folder: Path) -> None:
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        raise DatabaseReadOnly(f"{path} is on a filesystem that is mounted read-only")
    if not _may(folder, os.W_OK | os.X_OK):
        raise PermissionDenied(
            f"user {os.geteuid()} may not write in {folder}, where SQLite keeps two files beside {path.name!r}"
        )
    if path.exists() and not _may(path, os.R_OK):
        raise PermissionDenied(f"user {os.geteuid()} may not read {path}")
    if path.exists() and not _may(path, os.W_OK):
        raise DatabaseReadOnly(f"user {os.geteuid()} may read {path} but not write it: chmod it, or use another file")


def _may(path: Path, what: int) -> bool:
    return os.access(path, what, effective_ids=os.access in os.supports_effective_ids)


def _check_filesystem(path: Path) -> None:
    kind = filesystem_of(str(path))
    if kind in NETWORK_FILESYSTEMS:
        raise UnsupportedFilesystem(
            f"{path} is on {kind}, a network filesystem, where SQLite's locks and shared memory do not reach every "
            "process and tasks would be lost or run twice: put it on a local disk, or use PostgreSQL"
        )
