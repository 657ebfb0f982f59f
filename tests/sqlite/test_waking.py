"""Wake-ups: what another process writes is noticed within milliseconds, and an idle worker costs others nothing."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from cairnq import CairnQ, SqliteStore, TaskContext, WatchSignal, Worker
from tests.sqlite.programs import Program
from tests.support.gates import soon

SUBMITTER = """
import asyncio, sys, time
from cairnq import CairnQ

async def main():
    async with CairnQ.sqlite(sys.argv[1]) as client:
        await client.submit("other", queue="another")
        print("ready", flush=True)
        for line in sys.stdin:
            await client.submit("other process")

asyncio.run(main())
"""


async def test_a_submit_from_another_process_is_picked_up_long_before_a_poll(
    path: Path, start_program: Callable[..., Program]
) -> None:
    ran: asyncio.Queue[str] = asyncio.Queue()
    worker = Worker.sqlite(path, poll_interval_ms=600_000)

    @worker.task(name="other process")
    async def noted(ctx: TaskContext) -> None:
        ran.put_nowait(ctx.task_id)

    async with worker.background():
        submitter = await asyncio.to_thread(start_program, SUBMITTER, path)
        assert await asyncio.to_thread(submitter.read) == "ready"
        for _ in range(30):
            submitter.tell()
            await soon(ran.get())


async def test_a_wait_ends_when_another_process_settles(path: Path, store: SqliteStore) -> None:
    async with CairnQ.sqlite(path) as client:
        task = await client.submit("x")
        waiting = asyncio.create_task(client.wait(task.id, poll_ms=60_000, max_poll_ms=60_000))
        [running] = await store.claim(["default"], "worker_me")
        await store.complete(running.id, "worker_me", {"r": 1})
        assert (await waiting).result == {"r": 1}


async def test_many_waits_are_answered_by_one_look_each_change(path: Path, store: SqliteStore) -> None:
    async with CairnQ.sqlite(path) as client:
        tasks = [await client.submit("x", number) for number in range(100)]
        waits = [asyncio.create_task(client.wait(task.id, poll_ms=60_000, max_poll_ms=60_000)) for task in tasks]
        claimed = await store.claim(["default"], "worker_me", limit=100)
        for task in claimed:
            await store.complete(task.id, "worker_me", task.payload)
        assert [ended.result for ended in await asyncio.gather(*waits)] == list(range(100))


async def test_a_watch_names_the_queues_that_hold_work(path: Path, store: SqliteStore) -> None:
    signals: asyncio.Queue[WatchSignal] = asyncio.Queue()
    async with CairnQ.sqlite(path) as client:
        stop = await client.watch(signals.put_nowait, queues=["mine"], poll_ms=60_000)
        await store.submit("x", queue="theirs")
        task = await store.submit("x", queue="mine")
        while (signal := await signals.get()).reason != "queued":
            assert signal == WatchSignal("poll")
        assert signal == WatchSignal("queued", queue="mine")
        await store.cancel(task.id)
        await signals.get()
        await stop()


async def test_it_says_when_it_delivers_and_stops_when_told(store: SqliteStore) -> None:
    states: asyncio.Queue[bool] = asyncio.Queue()
    heard: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    stop = await store.listen(["cairnq_queued"], lambda *what: heard.put_nowait(what), states.put_nowait)
    assert await states.get() is True
    await store.submit("x", queue="q")
    assert await heard.get() == ("cairnq_queued", "q")
    thread = store._sqlite.watch._thread
    assert thread is not None
    await stop()
    await asyncio.to_thread(thread.join)


async def test_a_file_that_goes_away_ends_the_deliveries_until_it_is_back(
    path: Path, store: SqliteStore, tmp_path: Path
) -> None:
    states: asyncio.Queue[bool] = asyncio.Queue()
    stop = await store.listen(["cairnq_queued"], lambda *_: None, states.put_nowait)
    assert await states.get() is True
    path.rename(tmp_path / "elsewhere.db")
    assert await states.get() is False
    (tmp_path / "elsewhere.db").rename(path)
    assert await states.get() is True
    await stop()
    await stop()


async def test_an_idle_worker_works_on_while_somebody_holds_the_write_lock(
    path: Path, store: SqliteStore, other: sqlite3.Connection
) -> None:
    """Its looks, its recovery and its watch ask for no lock: were one refused, it would report an outage."""
    reported: list[BaseException] = []
    worker = Worker.sqlite(
        path, poll_interval_ms=5, lease_ms=600, busy_timeout_ms=0, on_error=lambda error, _info: reported.append(error)
    )
    worker.register("x", lambda _ctx: None)
    async with worker.background():
        other.execute("begin immediate")
        deadline = time.monotonic() + 0.7  # its polls, and three rounds of its recovery, which comes with each beat
        while time.monotonic() < deadline:
            assert await store.claim_many(["default"], "worker_me", 1000, 1, None) == []
        other.execute("rollback")
        task = await store.submit("x")
        async with CairnQ(store) as client:
            assert (await client.wait(task.id)).succeeded
    assert reported == []
