"""The write-ahead log begins anew though reads overlap, and a read that never ends holds up nobody for long."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from cairnq import SqliteStore
from cairnq.db.sqlite import log
from cairnq.db.sqlite.file import DatabaseFile
from tests.sqlite.turns import until

MIB = 1024 * 1024
PAYLOAD = "x" * (MIB // 4)

Reader = sqlite3.Connection


@pytest.fixture
def begin_read(path: Path) -> Iterator[Callable[[], Reader]]:
    """`begin_read()`: a connection in the middle of a read, for as long as it is open."""
    with ExitStack() as stack:

        def begin() -> Reader:
            connection = stack.enter_context(closing(sqlite3.connect(path, isolation_level=None)))
            connection.execute("begin")
            connection.execute("select count(*) from cairnq_tasks").fetchall()
            return connection

        yield begin


@pytest.fixture
def large_at_a_mib(monkeypatch: pytest.MonkeyPatch) -> None:
    """And looked at after every commit."""
    monkeypatch.setattr(log, "LARGE_BYTES", MIB)
    monkeypatch.setattr(log, "FIRST_PAUSE_S", 0.0)
    monkeypatch.setattr(log, "LAST_PAUSE_S", 0.0)


@pytest.fixture
async def patient(path: Path, large_at_a_mib: None, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqliteStore]:
    """A store whose writer stands back for as long as it takes."""
    monkeypatch.setattr(log, "PATIENCE_MS", 60_000)
    store = SqliteStore(path, busy_timeout_ms=120_000)
    await store.connect()
    yield store
    await store.close()


def log_size(path: Path) -> int:
    return Path(f"{path}-wal").stat().st_size


async def test_the_log_stays_short_while_reads_overlap(
    path: Path, patient: SqliteStore, begin_read: Callable[[], Reader]
) -> None:
    """At each commit somebody reads what was before it, and another read begins before that one ends."""
    reader, sizes = begin_read(), []
    for number in range(40):
        submitting = asyncio.create_task(patient.submit("x", PAYLOAD, key=f"{number}"))
        while not submitting.done():
            last, reader = reader, begin_read()
            last.close()
            await asyncio.wait([submitting], timeout=0.01)
        await submitting
        sizes.append(log_size(path))
    assert max(sizes) < 3 * MIB, sizes
    assert (await patient.stats())["default"]["queued"] == 40


async def test_a_read_that_never_ends_is_not_waited_for_again_and_again(
    path: Path, large_at_a_mib: None, begin_read: Callable[[], Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "FIRST_PAUSE_S", 3600.0)
    monkeypatch.setattr(log, "LAST_PAUSE_S", 3600.0)
    store = SqliteStore(path)
    await store.connect()
    keeper = store._sqlite.writer.log
    begin_read()
    for number in range(6):
        await store.submit("x", PAYLOAD, key=f"{number}")
        await until(lambda: not store._sqlite.writer._is_serving)
        if number == 4:
            keeper._looked_at = None  # as if an hour had passed
    await store.close()
    assert log_size(path) > MIB
    assert keeper.tries == 1


async def test_the_writer_waits_for_locks_by_itself_after_a_try(
    patient: SqliteStore, begin_read: Callable[[], Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "PATIENCE_MS", 1)
    writer = patient._sqlite.writer
    begin_read()
    while not writer.log.tries:
        await patient.submit("x", PAYLOAD)
    await until(lambda: not writer._is_serving)
    assert writer._connection is not None
    assert writer._connection.execute("pragma busy_timeout").fetchone() == (0,)


@pytest.mark.parametrize(("busy_timeout_s", "patience_ms"), [(30, 500), (5, 500), (0.5, 250), (0, 0)])
def test_writers_stand_back_for_less_than_others_wait_for_the_lock(
    tmp_path: Path, busy_timeout_s: float, patience_ms: int
) -> None:
    keeper = log.LogKeeper(DatabaseFile(tmp_path / "x.db", busy_timeout_s=busy_timeout_s))
    assert keeper._patience_ms() == patience_ms


def test_after_each_try_in_vain_the_next_comes_later(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = []
    monkeypatch.setattr(log, "LARGE_BYTES", 4096)
    monkeypatch.setattr(log, "PATIENCE_MS", 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as writer, closing(sqlite3.connect(path)) as reader:
        writer.execute("pragma journal_mode = wal")
        writer.execute("create table t (n int)")
        keeper = log.LogKeeper(DatabaseFile(path, busy_timeout_s=5.0))
        reader.execute("begin")
        reader.execute("select count(*) from t").fetchall()
        for _ in range(6):
            writer.execute("insert into t values (1)")
            keeper._looked_at = None
            keeper.keep_short(writer)
            pauses.append(keeper._pause)
        reader.rollback()
        keeper._looked_at = None
        keeper.keep_short(writer)
        pauses.append(keeper._pause)
    assert pauses == [10.0, 20.0, 40.0, 60.0, 60.0, 60.0, 5.0]
