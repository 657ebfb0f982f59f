"""Paths that no database can be at, and files that are none: a named error each, which says what to do."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cairnq import (
    CairnQ,
    ConnectError,
    DatabaseReadOnly,
    InvalidArgument,
    InvalidPath,
    NotADatabase,
    PermissionDenied,
    SqliteStore,
    StoreClosed,
    UnsupportedFilesystem,
)
from cairnq.db.sqlite import mounts
from cairnq.store import sqlite_file
from cairnq.store.sqlite_file import OLDEST_SQLITE, check_version

NOBODY = 65534


async def connect(path: Path | str, *, migrate: bool = True) -> None:
    store = SqliteStore(path, migrate=migrate)
    try:
        await store.connect()
    finally:
        await store.close()


async def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidPath, match="is a directory: name a file inside it"):
        await connect(tmp_path)


async def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidPath, match=r"the folder .*/no of the database 'x.db' does not exist"):
        await connect(tmp_path / "no" / "x.db")


async def test_a_pipe_is_refused(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(InvalidPath, match="a database needs a plain file"):
        await connect(path)


@pytest.mark.parametrize("given", ["", ":memory:", "file:x.db?mode=memory", "sqlite:///x.db", "a\x00b", 5, None])
def test_what_is_no_path_is_refused_at_once(given: object) -> None:
    with pytest.raises(InvalidPath):
        SqliteStore(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [-1, 1.5, True, "5000"])
def test_a_time_out_that_is_none_is_refused_at_once(path: Path, given: object) -> None:
    with pytest.raises(InvalidArgument, match="busy_timeout_ms"):
        SqliteStore(path, busy_timeout_ms=given)  # type: ignore[arg-type]


@pytest.mark.parametrize("content", [b"hello " * 1000, b"SQLite format 2\x00" + b"\x00" * 2000])
async def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(NotADatabase, match="not an SQLite database"):
        await connect(path)
    assert path.read_bytes() == content


async def test_a_damaged_database_is_no_outage(path: Path) -> None:
    await connect(path)
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 4000)
    with pytest.raises(ConnectError, match="malformed"):
        await connect(path)


async def test_without_the_right_to_make_one_it_is_not_made(path: Path) -> None:
    with pytest.raises(ConnectError, match="does not exist and migrate is off"):
        await connect(path, migrate=False)
    assert not path.exists()


@pytest.fixture
def nobodys() -> Iterator[Path]:
    """A folder of this process's effective user, who is not root."""
    folder = Path(tempfile.mkdtemp(prefix="cairnq-test-"))
    was = os.geteuid()
    if was == 0:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    yield folder
    os.seteuid(was)
    folder.chmod(0o700)
    shutil.rmtree(folder)


async def test_a_file_that_may_only_be_read_is_refused(nobodys: Path) -> None:
    path = nobodys / "x.db"
    path.touch(0o444)
    with pytest.raises(DatabaseReadOnly, match="may read .* but not write it"):
        await connect(path)


async def test_a_file_that_may_not_be_read_is_refused(nobodys: Path) -> None:
    path = nobodys / "x.db"
    path.touch(0o000)
    with pytest.raises(PermissionDenied, match="may not read"):
        await connect(path)


async def test_a_folder_that_may_not_be_written_is_refused(nobodys: Path) -> None:
    nobodys.chmod(0o555)
    with pytest.raises(PermissionDenied, match="may not write in"):
        await connect(nobodys / "x.db")


async def test_a_folder_that_may_not_be_entered_is_refused(nobodys: Path) -> None:
    nobodys.chmod(0o000)
    with pytest.raises(PermissionDenied, match="may not look into"):
        await connect(nobodys / "x.db")


# --- network filesystems -------------------------------------------------------------------------------

MOUNTINFO = """\
22 1 253:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /mnt/share rw,relatime shared:8 - nfs4 server:/export rw,vers=4.2
31 22 0:27 / /mnt/share/local rw - xfs /dev/vdb rw
32 22 0:28 / /mnt/two\\040words rw - fuse.sshfs me@host: rw
33 22 0:29 / /mnt/over rw - ext4 /dev/vdc rw
34 33 0:30 / /mnt/over rw master:2 - cifs //host/share rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/x.db", "ext4"),
        ("/mnt/share/x.db", "nfs4"),
        ("/mnt/shared/x.db", "ext4"),
        ("/mnt/share/local/deep/x.db", "xfs"),
        ("/mnt/two words/x.db", "fuse.sshfs"),
        ("/mnt/over/x.db", "cifs"),
    ],
)
def test_the_filesystem_is_that_of_the_innermost_mount(tmp_path: Path, path: str, kind: str) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(MOUNTINFO)
    assert mounts.filesystem_of(path, table) == kind


def test_where_nothing_tells_the_filesystem_is_not_known(tmp_path: Path) -> None:
    assert mounts.filesystem_of("/x.db", tmp_path / "no such table") is None


def test_this_machines_own_filesystem_is_known(path: Path) -> None:
    assert mounts.filesystem_of(str(path)) not in {None, *sqlite_file.NETWORK_FILESYSTEMS}


async def test_a_network_filesystem_is_refused_with_the_reason(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "filesystem_of", lambda _path: "nfs4")
    with pytest.raises(UnsupportedFilesystem, match="on nfs4, a network filesystem, where SQLite's locks"):
        await connect(path)
    assert not path.exists()


# --- the library ---------------------------------------------------------------------------------------


def test_an_old_library_is_refused_by_number() -> None:
    check_version(OLDEST_SQLITE)
    with pytest.raises(ConnectError, match=r"SQLite 3\.34\.1 is too old: this program needs 3\.35\.0"):
        check_version((3, 34, 1))


# --- a life --------------------------------------------------------------------------------------------


async def test_after_close_every_door_is_shut(path: Path) -> None:
    client = CairnQ.sqlite(path)
    await client.connect()
    await client.close()
    await client.close()
    with pytest.raises(StoreClosed):
        await client.submit("x")
    with pytest.raises(StoreClosed):
        await client.get("task_x")
    with pytest.raises(StoreClosed):
        await client.submit("x", key="k")


async def test_a_path_may_be_odd(tmp_path: Path) -> None:
    path = tmp_path / "what? 100% #odd; 'é'.db"
    await connect(path)
    assert path.exists()
    async with CairnQ.sqlite(os.fspath(path)) as client:
        assert (await client.submit("x")).queued
