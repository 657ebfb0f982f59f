"""When a worker looks for work: a notification shortens the sleep, the poll is the truth, and idleness is cheap."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from cairnq import CairnQ, TaskContext, Worker
from cairnq.pure.clock import boottime
from tests.support.cluster import Cluster
from tests.support.gates import Gate, Recorder, soon, until
from tests.worker.conftest import MakeWorker


async def test_a_notification_wakes_the_worker_long_before_its_poll(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, gate = make_worker(poll_interval_ms=60_000), Gate()
    worker.register("gate", gate)
    gate.open()
    async with worker.background():
        await client.call("gate")
        await gate.entered()
        waits = []
        for number in range(20):
            await asleep(worker)
            began = boottime()
            await client.submit("gate", number)
            await gate.entered()
            waits.append(boottime() - began)
    assert sorted(waits)[10] < 0.1, f"half of them at once, though the next poll is a minute away: {waits}"


async def test_what_was_queued_before_notifications_began_is_found_when_they_do(
    client: CairnQ, make_worker: MakeWorker, store: Any
) -> None:
    states: asyncio.Queue[Any] = asyncio.Queue()

    async def listen(_channels: Any, _on_notify: Any, on_state: Any) -> Any:
        async def stop() -> None: ...

        states.put_nowait(on_state)
        return stop

    worker = make_worker(poll_interval_ms=60_000)
    store.listen = listen
    worker.register("x", lambda _ctx: "found")
    async with worker.background():
        on_state = await soon(states.get())
        await asleep(worker)
        task = await client.submit("x")
        on_state(True)
        while (row := await client.get(task.id)) is not None and not row.is_terminal:
            pass
    assert row is not None
    assert row.result == "found"


async def asleep(worker: Worker) -> None:
    """Until the worker has nothing planned but its poll."""
    assert worker._running is not None
    assert worker._running.standalone is not None
    engine = worker._running.standalone.engine
    claimer = engine._claimer
    await until(lambda: not claimer.is_busy and claimer._looks.next_look() > boottime() + 10, engine._changed)


async def test_a_delayed_task_is_found_by_the_poll_alone(client: CairnQ, make_worker: MakeWorker) -> None:
    worker = make_worker(poll_interval_ms=20)
    worker.register("later", lambda _ctx: "found")
    async with worker.background():
        task = await client.submit("later", delay_ms=300)
        ended = await client.wait(task.id)
    assert ended.result == "found"
    assert ended.completed_at_ms is not None
    assert ended.completed_at_ms >= task.created_at_ms + 300


async def test_without_notifications_the_poll_finds_everything(
    client: CairnQ, make_worker: MakeWorker, store: Any
) -> None:
    async def deaf(*_arguments: Any) -> Any:
        async def stop() -> None: ...

        return stop

    worker = make_worker(poll_interval_ms=20)
    store.listen = deaf
    worker.register("x", lambda _ctx: "found")
    async with worker.background():
        task = await client.submit("x")
        while (row := await client.get(task.id)) is not None and not row.is_terminal:
            pass
    assert row is not None
    assert row.result == "found"


async def test_a_retry_and_a_backlog_are_taken_without_waiting_for_the_poll(
    client: CairnQ, make_worker: MakeWorker
) -> None:
    worker, attempts = make_worker(poll_interval_ms=60_000), []

    @worker.task
    async def stubborn(ctx: TaskContext) -> None:
        attempts.append(ctx.attempt)
        if ctx.attempt < 3:
            raise RuntimeError("again")

    worker.register("x", lambda _ctx: None)
    tasks = await client.submit_many([{"name": "x"}] * 40)
    async with worker.background():
        for task in tasks:
            await soon(client.wait(task.id))
        await soon(client.call("stubborn"))
    assert attempts == [1, 2, 3]


async def test_what_a_dead_worker_left_is_recovered_and_run(
    client: CairnQ, make_worker: MakeWorker, store: Any, events: Recorder
) -> None:
    worker = make_worker(lease_ms=900)
    worker.register("x", lambda ctx: [ctx.attempt, ctx.worker_id])
    task = await client.submit("x")
    await store.claim(["default"], "worker_DEAD", lease_ms=1)
    async with worker.background():
        assert (await client.wait(task.id)).result == [2, worker.worker_id]
    assert sum(fields["tasks"] for fields in events.all("tasks.recovered")) == 1


@pytest.mark.slow
@pytest.mark.postgres
async def test_an_idle_worker_sends_its_polls_and_little_else(
    make_worker: MakeWorker, server: Cluster, database: str, client: CairnQ
) -> None:
    worker = make_worker(poll_interval_ms=500)
    worker.register("x", lambda _ctx: None)
    with server.connect(database.rsplit("/", 1)[1]) as admin:
        if not server.binaries.has_library("pg_stat_statements"):
            pytest.skip("this server cannot count statements")
        admin.execute("create extension pg_stat_statements")
        async with worker.background():
            await client.call("x")
            (polls, others), began = calls(admin), boottime()
            for _ in range(10):
                await asyncio.sleep(0.5)  # sleep: idleness is what is counted
            seconds = boottime() - began
            polls, others = (after - before for after, before in zip(calls(admin), (polls, others), strict=True))
    assert polls <= seconds / 0.5 + 4, (polls, seconds)  # a wake is followed by two more looks
    assert others <= seconds / 2 + 4, (others, seconds)  # rounds of upkeep


def calls(admin: psycopg.Connection[Any]) -> tuple[int, int]:
    """Claims of this database so far, and its other statements but for those that ask."""
    claims, others = admin.execute(
        """select coalesce(sum(calls) filter (where query like '%attempt = t.attempt +%'), 0)::int,
                  coalesce(sum(calls) filter (where query not like '%attempt = t.attempt +%'), 0)::int
           from pg_stat_statements
           where dbid = (select oid from pg_database where datname = current_database())
           and query not like '%pg_stat_statements%'"""
    ).fetchone() or (0, 0)
    return claims, others
