"""The database goes away and comes back: nothing ends, results are kept, and the log says it in two lines."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import psycopg
import pytest

from cairnq import CairnQ, DatabaseUnavailable, PermissionDenied, TaskContext, Worker
from cairnq.store.postgres import PostgresStore
from tests.support.cluster import Cluster
from tests.support.gates import Gate, Recorder, soon
from tests.support.proxy import Proxy
from tests.worker.conftest import MakeWorker

pytestmark = pytest.mark.postgres


def name_of(database: str) -> str:
    return database.rsplit("/", 1)[1]


def end_all_sessions(server: Cluster, database: str) -> int:
    with server.connect() as connection:
        ended = connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name_of(database)]
        )
        return len(ended.fetchall())


async def test_ended_sessions_cost_nothing(
    client: CairnQ, make_worker: MakeWorker, server: Cluster, database: str, events: Recorder
) -> None:
    worker, gate = make_worker(concurrency=8), Gate()
    worker.register("gate", gate)
    async with worker.background():
        tasks = [await client.submit("gate", number) for number in range(8)]
        for _ in tasks:
            await gate.entered()
        assert end_all_sessions(server, database) > 0
        gate.open()
        async with CairnQ.postgres(database) as other:
            ended = [await other.wait(task.id) for task in tasks]
            assert await other.call("gate", "after") == "after"
    assert [(task.result, task.attempt) for task in ended] == [(number, 1) for number in range(8)]
    assert len(events.all("database.failed")) <= 1
    assert len(events.all("database.failed")) == len(events.all("database.recovered"))


async def test_a_loop_that_was_blocked_is_not_taken_for_a_database_that_is_away(
    client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    """The claim after the first one is under way while the handler blocks the loop past the end of all patience."""
    worker = make_worker(concurrency=2, lease_ms=1200)

    @worker.task
    async def blocking(ctx: TaskContext) -> None:
        time.sleep(1.1)  # noqa: ASYNC251  # sleep: it blocks the loop, as an async handler must not

    task = await client.submit("blocking")
    async with worker.background():
        assert (await client.wait(task.id)).succeeded
    assert events.all("database.failed") == []


@pytest.mark.fault(row=19)
async def test_a_server_that_restarts_finds_the_results_kept(own_server: Cluster, events: Recorder) -> None:
    database = own_server.dsn(own_server.create_database())
    worker, gate = Worker.postgres(database, concurrency=8, poll_interval_ms=50, lease_ms=15_000), Gate()
    worker._emit = events
    worker.register("gate", gate)
    async with CairnQ.postgres(database) as client, worker.background():
        tasks = await client.submit_many([{"name": "gate", "payload": number} for number in range(8)])
        for _ in tasks:
            await gate.entered()
        await asyncio.to_thread(own_server.stop)
        gate.open()
        await events.wait("database.failed")
        await asyncio.to_thread(own_server.start)
        await events.wait("database.recovered")
        ended = [await client.wait(task.id) for task in tasks]
        assert await client.call("gate", "after") == "after"
    assert [(task.status, task.result, task.attempt) for task in ended] == [
        ("succeeded", number, 1) for number in range(8)
    ]
    assert [name for name, _ in events.events if name.startswith(("database.", "lease."))] == [
        "database.failed",
        "database.recovered",
    ]


@pytest.mark.fault(row=9)
async def test_a_worker_that_is_cut_off_for_longer_than_its_lease_knows_it_by_its_own_clock(
    far_store: PostgresStore, proxy: Proxy, client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    worker, gate = make_worker(store=far_store, lease_ms=1500), Gate()
    worker.register("held", gate)
    async with worker.background():
        task = await client.submit("held", 1)
        ctx = await gate.entered()
        proxy.black_hole()
        await soon(ctx.lease_lost.wait())
        running = await client.get(task.id)
        assert running is not None
        assert (running.status, running.attempt) == ("running", 1), "nobody told the worker"
        await events.wait("lease.lost")
        assert gate.cancelled == 1
        gate.open()
        proxy.pass_through()
        ended = await client.wait(task.id)
    assert (ended.status, ended.attempt) == ("succeeded", 2)


async def test_a_result_is_kept_through_an_outage_and_settled_while_trusted(
    far_store: PostgresStore, proxy: Proxy, client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    worker, gate = make_worker(store=far_store, lease_ms=9_000), Gate()
    worker.register("held", gate)
    async with worker.background():
        task = await client.submit("held", "kept")
        await gate.entered()
        proxy.refuse()
        gate.open()
        await events.wait("database.failed")
        assert (await client.get_status(task.id)).status == "running"  # type: ignore[union-attr]
        proxy.pass_through()
        ended = await client.wait(task.id)
    assert (ended.result, ended.attempt) == ("kept", 1)
    assert len(events.all("database.failed")) == len(events.all("database.recovered")) == 1


async def test_progress_waits_for_the_database_while_the_lease_is_trusted(
    far_store: PostgresStore, proxy: Proxy, client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    worker, gate = make_worker(store=far_store, lease_ms=9_000), Gate()

    @worker.task
    async def reports(ctx: TaskContext, payload: Any) -> str:
        await gate(ctx, payload)
        await ctx.progress(0.5, "in spite of it")
        return "went on"

    async with worker.background():
        task = await client.submit("reports")
        await gate.entered()
        proxy.refuse()
        gate.open()
        await events.wait("database.failed")
        proxy.pass_through()
        ended = await client.wait(task.id)
    assert (ended.result, ended.message, ended.attempt) == ("went on", "in spite of it", 1)


async def test_a_drain_ends_on_time_though_the_database_is_away(
    far_store: PostgresStore, proxy: Proxy, client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    worker, gate = make_worker(store=far_store, lease_ms=60_000), Gate()
    worker.register("gate", gate)
    async with worker.background(drain_timeout=0.2):
        task = await client.submit("gate")
        await gate.entered()
        proxy.refuse()
    [left] = events.all("task.left")
    assert left["task_id"] == task.id
    proxy.pass_through()


async def test_a_start_without_a_database_says_so(proxy: Proxy, database: str) -> None:
    proxy.refuse()
    worker = Worker.postgres(proxy.dsn(database))
    with pytest.raises(DatabaseUnavailable):
        await worker.run()
    await worker.close()


async def test_a_right_that_goes_missing_is_told_once_and_waited_out(
    server: Cluster, database: str, client: CairnQ, events: Recorder
) -> None:
    role = f"weak_{name_of(database)}"
    with server.connect(name_of(database)) as admin:
        admin.execute(psycopg.sql.SQL("create role {} login").format(psycopg.sql.Identifier(role)))
        grant(admin, "grant", role)
        worker = Worker.postgres(database.replace("postgres@", f"{role}@"), poll_interval_ms=20)
        reported: list[Any] = []
        worker._emit = events
        worker.register("x", lambda _ctx: "back")
        async with worker.background():
            await client.call("x")
            grant(admin, "revoke", role)
            failed = await events.wait("database.failed")
            reported.append(failed["error"])
            task = await client.submit("x")
            grant(admin, "grant", role)
            assert (await client.wait(task.id)).result == "back"
        await worker.close()
        assert isinstance(reported[0], PermissionDenied)
        operations = [fields["operation"] for fields in events.all("database.failed")]
        assert len(operations) == len(set(operations)), "one line for each operation that met it"
        admin.execute(psycopg.sql.SQL("drop owned by {}").format(psycopg.sql.Identifier(role)))
        admin.execute(psycopg.sql.SQL("drop role {}").format(psycopg.sql.Identifier(role)))


def grant(admin: psycopg.Connection[Any], verb: str, role: str) -> None:
    to = "to" if verb == "grant" else "from"
    for rights in ("all on all tables in schema public", "usage on schema public"):
        admin.execute(f"{verb} {rights} {to} {role}")  # type: ignore[call-overload]


async def test_on_error_hears_what_no_caller_sees(
    far_store: PostgresStore, proxy: Proxy, client: CairnQ, caplog: pytest.LogCaptureFixture
) -> None:
    heard: asyncio.Queue[tuple[Exception, dict[str, Any]]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def on_error(error: Exception, info: dict[str, Any]) -> None:
        loop.call_soon_threadsafe(heard.put_nowait, (error, info))
        raise RuntimeError("a reporter that fails itself")

    worker = Worker(far_store, ["default"], poll_interval_ms=20, lease_ms=3_000, on_error=on_error)
    worker.register("x", lambda _ctx: 1 / 0)
    async with worker.background():
        await client.wait((await client.submit("x", max_attempts=1)).id)
        assert heard.empty(), "what a handler raises stands in the task and in the log"
        proxy.refuse()
        error, info = await soon(heard.get())
        proxy.pass_through()
        assert isinstance(error, DatabaseUnavailable)
        assert info["event"] == "database.failed"
        await client.submit("x", max_attempts=1)
    text = caplog.text
    assert "ZeroDivisionError" in text
    assert "on_error itself raised, at database.failed" in text
