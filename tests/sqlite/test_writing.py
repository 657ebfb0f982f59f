"""Writes of one process: committed together, failing alone, waiting for others' locks while reads go on."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cairnq import DatabaseReplaced, DatabaseUnavailable, InvalidArgument, PgSession, SqliteStore
from tests.sqlite.turns import until
from tests.support.tasks import ME, claimed

TRIGGER = """
create trigger refuse before insert on cairnq_tasks when new.name = 'refused'
begin select raise({how}, 'refused by a trigger'); end
"""


async def test_without_a_thread_left_the_caller_hears_of_it_and_may_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "cairnq.db")
    installation = await store.connect()
    await store.close()
    store = SqliteStore(tmp_path / "cairnq.db", installation=installation)

    heard: asyncio.Queue[bool] = asyncio.Queue()
    start = threading.Thread.start

    def none_left(thread: threading.Thread) -> None:
        if thread.name.startswith("cairnq"):
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", none_left)
        for _ in range(2):
            with pytest.raises(DatabaseUnavailable, match="no thread for the database: can't start new thread"):
                await store.submit("x")
            with pytest.raises(DatabaseUnavailable, match="no thread for the database: can't start new thread"):
                await store.listen(["cairnq_queued"], lambda *_: None, heard.put_nowait)
    assert (await store.submit("x")).queued
    stop = await store.listen(["cairnq_queued"], lambda *_: None, heard.put_nowait)
    assert await heard.get() is True
    await stop()
    assert heard.empty(), "who could not subscribe is told nothing"
    await store.close()


# --- together ------------------------------------------------------------------------------------------


async def test_what_waits_together_is_committed_together(store: SqliteStore, other: sqlite3.Connection) -> None:
    writer = store._sqlite.writer
    commits, statements = writer.commits, writer.statements
    other.execute("begin immediate")
    waiting = asyncio.gather(*(store.submit("x", number) for number in range(200)))
    await until(lambda: writer._queue.qsize() == 199)  # one has been taken up, and waits for the lock
    other.execute("rollback")
    tasks = await waiting
    assert writer.statements - statements == 200
    assert writer.commits - commits == 1
    assert [task.payload for task in tasks] == list(range(200))
    assert other.execute("select count(*) from cairnq_tasks").fetchone() == (200,)


@pytest.mark.parametrize("how", ["abort", "fail", "rollback"])
async def test_one_that_fails_does_not_undo_the_others(store: SqliteStore, other: sqlite3.Connection, how: str) -> None:
    """`rollback` undoes the whole transaction, as a full disk does: then each gets one of its own."""
    other.execute(TRIGGER.format(how=how))
    other.execute("begin immediate")
    names = ["x", "refused", "x", "x", "refused", "x"]
    waiting = asyncio.gather(*(store.submit(name) for name in names), return_exceptions=True)
    await until(lambda: store._sqlite.writer._queue.qsize() >= len(names) - 1)
    other.execute("rollback")
    outcomes = await waiting
    assert [isinstance(outcome, InvalidArgument) for outcome in outcomes] == [name == "refused" for name in names]
    assert "refused by a trigger" in str(outcomes[1])
    assert sorted(other.execute("select id from cairnq_tasks")) == sorted(
        (outcome.id,) for outcome in outcomes if not isinstance(outcome, BaseException)
    )


async def test_one_that_nobody_waits_for_any_more_is_not_run(store: SqliteStore, other: sqlite3.Connection) -> None:
    other.execute("begin immediate")
    first = asyncio.create_task(store.submit("first"))
    given_up = asyncio.create_task(store.submit("given up"))
    await until(lambda: store._sqlite.writer._queue.qsize() >= 1)
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    other.execute("rollback")
    await first
    assert other.execute("select name from cairnq_tasks").fetchall() == [("first",)]


# --- the lock ------------------------------------------------------------------------------------------


async def test_a_lock_that_is_held_too_long_is_an_outage_by_name_and_reads_go_on(
    path: Path, store: SqliteStore, other: sqlite3.Connection
) -> None:
    task = await store.submit("x")
    hasty = SqliteStore(path, busy_timeout_ms=50)
    await hasty.connect()
    other.execute("begin immediate")
    writing = asyncio.gather(
        hasty.submit("x"), hasty.submit("x", key="k"), hasty.cancel(task.id), return_exceptions=True
    )
    assert (await hasty.get(task.id)) == task
    assert await hasty.claim_many(["nothing here"], ME, 1000, 1, None) == []
    for outcome in await writing:
        assert isinstance(outcome, DatabaseUnavailable)
        assert "another process held the write lock" in str(outcome)
        assert "50 ms (busy_timeout_ms)" in str(outcome)
    other.execute("rollback")
    assert (await hasty.submit("y")).queued
    await hasty.close()
    assert (await store.stats())["default"]["queued"] == 2


async def test_all_that_waited_too_long_are_told_so_at_once(
    path: Path, store: SqliteStore, other: sqlite3.Connection
) -> None:
    hasty = SqliteStore(path, busy_timeout_ms=1000)
    await hasty.connect()
    other.execute("begin immediate")
    started = time.monotonic()
    waiting = [hasty.submit("x", number, key=f"{number}" if number % 2 else None) for number in range(30)]
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    took = time.monotonic() - started
    other.execute("rollback")
    await hasty.close()
    assert all(isinstance(outcome, DatabaseUnavailable) for outcome in outcomes)
    assert took < 15 * 1.0  # not one time-out after the other, which would be 30


async def test_an_idle_look_never_asks_for_the_write_lock(store: SqliteStore, other: sqlite3.Connection) -> None:
    await store.submit("x", run_at_delay_ms=60_000)
    await claimed(store)
    other.execute("begin immediate")
    assert await store.claim(["default"], ME) == []
    assert await store.claim(["default"], ME, names=["x"]) == []
    assert await store.recover() == 0
    assert await store.claim_session(["default"], ME, 1000, None, _never) is None
    other.execute("rollback")


async def _never(_draw: object) -> None:
    raise AssertionError("nothing is due")


# --- a transaction that a task leads -------------------------------------------------------------------


async def test_a_write_beside_its_own_transaction_is_refused_and_not_waited_for(store: SqliteStore) -> None:
    running = await claimed(store)

    async def write(session: PgSession) -> str:
        with pytest.raises(InvalidArgument, match="must go through its session"):
            await store.submit("x")
        with pytest.raises(InvalidArgument, match="must go through its session"):
            await store.submit("x", key="k")
        assert await store.get(running.id) == running
        return (await store.submit("chained", session=session)).id

    task, chained = await store.complete_in(running.id, ME, write)
    assert task.result == chained
    found = await store.get(chained)
    assert found is not None
    assert found.queued


async def test_a_session_is_of_use_within_its_transaction_only(store: SqliteStore) -> None:
    running = await claimed(store)
    kept: list[PgSession] = []

    async def write(session: PgSession) -> None:
        kept.append(session)

    await store.complete_in(running.id, ME, write)
    for session in (kept[0], "a string", sqlite3):
        with pytest.raises(InvalidArgument, match="session must be one that succeed_in"):
            await store.submit("x", session=session)


async def test_a_transaction_whose_task_is_cancelled_is_rolled_back(
    store: SqliteStore, other: sqlite3.Connection
) -> None:
    running = await claimed(store)
    inside = asyncio.Event()

    async def write(session: PgSession) -> None:
        await session.execute("create table t (n int); insert into t values (1); insert into t values (';')")
        assert await session.query("select n from t where n = $1", [1]) == [{"n": 1}]
        inside.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(store.complete_in(running.id, ME, write))
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await store.submit("after it")).queued
    assert other.execute("select count(*) from sqlite_master where name = 't'").fetchone() == (0,)
    assert await store.get(running.id) == running


async def test_a_transaction_that_is_given_up_while_it_waits_holds_nothing_up(
    store: SqliteStore, other: sqlite3.Connection
) -> None:
    other.execute("begin immediate")
    task = asyncio.create_task(store.submit("x", key="k"))
    await until(lambda: store._sqlite.writer._is_serving)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    other.execute("rollback")
    assert (await store.submit("y")).queued
    assert other.execute("select name from cairnq_tasks").fetchall() == [("y",)]


# --- a file that is hurt -------------------------------------------------------------------------------


@pytest.fixture
def full_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """`full_at(pages)`: connections opened from now on find the disk full there."""
    connect = sqlite3.connect

    def limit(pages: int) -> None:
        def connect_limited(*args: Any, **options: Any) -> sqlite3.Connection:
            connection = connect(*args, **options)
            connection.execute(f"pragma max_page_count = {pages}")
            return connection

        monkeypatch.setattr(sqlite3, "connect", connect_limited)

    return limit


async def test_a_full_disk_is_an_outage_that_costs_only_what_does_not_fit(
    path: Path, store: SqliteStore, other: sqlite3.Connection, full_at: Callable[[int], None]
) -> None:
    [[pages]] = other.execute("pragma page_count")
    full_at(pages + 20)
    cramped = SqliteStore(path)
    small = await cramped.submit("x", "fits")
    outcomes = await asyncio.gather(
        *(cramped.submit("x", "y" * size) for size in (1000, 500_000, 1000)), return_exceptions=True
    )
    assert isinstance(outcomes[1], DatabaseUnavailable)
    assert "the disk is full" in str(outcomes[1])
    kept = {task.id for task in await cramped.list()}
    assert kept == {small.id, *(task.id for task in outcomes if not isinstance(task, BaseException))}
    assert len(kept) == 3
    await cramped.close()
    assert other.execute("pragma integrity_check").fetchall() == [("ok",)]


@pytest.mark.parametrize("what", ["deleted", "replaced", "moved"])
async def test_a_file_that_goes_away_is_noticed_by_the_next_call(
    path: Path, store: SqliteStore, what: str, tmp_path: Path
) -> None:
    task = await store.submit("x")
    match what:
        case "deleted":
            path.unlink()
        case "replaced":
            fresh = tmp_path / "fresh.db"
            fresh.write_bytes(path.read_bytes())
            fresh.replace(path)
        case "moved":
            path.rename(tmp_path / "elsewhere.db")
    for call in (store.submit("x"), store.get(task.id), store.submit("x", key="k"), store.stats()):
        with pytest.raises(DatabaseReplaced, match="no longer the file that was opened"):
            await call
    if what == "moved":
        (tmp_path / "elsewhere.db").rename(path)
        assert await store.get(task.id) == task
