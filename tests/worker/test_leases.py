"""Leases: kept by a thread that no handler can block, believed in no longer than they hold, and never written past."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from cairnq import CairnQ, EventLoopBlocked, LostLease, Registry, TaskContext
from cairnq.store.postgres import PostgresStore
from tests.support.gates import PATIENCE_S, Gate, Recorder, ThreadGate, soon, until
from tests.support.rigs import MakeRig, lose_next_reply, move_to_another_worker
from tests.worker.conftest import MakeWorker


async def test_a_handler_that_blocks_the_loop_for_three_leases_keeps_its_lease_and_is_named(
    client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    worker, runs = make_worker(lease_ms=1500), []

    @worker.task("the-guilty-one")
    async def blocks(ctx: TaskContext) -> str:
        runs.append(ctx.attempt)
        time.sleep(4.5)  # noqa: ASYNC251  # sleep: a handler that blocks the loop is what this is about
        return "settled all the same"

    async with worker.background():
        assert await client.call("the-guilty-one") == "settled all the same"
    assert runs == [1]
    assert events.all("lease.lost") == []
    [blocked] = events.all("loop.blocked")
    assert isinstance(blocked["error"], EventLoopBlocked)
    assert blocked["handler"] == "the-guilty-one"
    assert "time.sleep(4.5)" in blocked["stack"]  # sleep: this is only the word
    assert (blocked["error"].interval_ms, blocked["error"].lease_ms) == (500, 1500)


async def test_of_handlers_in_one_wrapper_the_one_that_runs_is_named(
    client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    worker, gate = make_worker(lease_ms=1500, concurrency=3), Gate()

    def wrapper(blocks: bool) -> Any:
        async def call(ctx: TaskContext, payload: Any) -> None:
            if not blocks:
                await gate(ctx, payload)
            deadline = time.monotonic() + PATIENCE_S
            while blocks and not events.all("loop.blocked") and time.monotonic() < deadline:
                time.sleep(0.01)  # noqa: ASYNC251  # sleep: a handler that blocks the loop is what this is about

        return call

    for name in ("innocent", "guilty", "bystander"):
        worker.register(name, wrapper(blocks=name == "guilty"))
    async with worker.background():
        for name in ("innocent", "bystander"):
            await client.submit(name)
            await gate.entered()
        await client.call("guilty")
        gate.open()
    assert [blocked["handler"] for blocked in events.all("loop.blocked")] == ["guilty"]


async def test_a_long_task_is_beaten_for_as_long_as_it_runs(
    client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    worker, gate = make_worker(lease_ms=1500), Gate()
    worker.register("long", gate)
    async with worker.background():
        task = await client.submit("long", 1)
        await gate.entered()
        before = await client.get(task.id)
        assert before is not None
        assert before.lease_until_ms is not None
        until_ms = before.lease_until_ms + 4500
        while (now := await client.get(task.id)) is not None and (now.lease_until_ms or 0) < until_ms:
            assert (now.status, now.attempt) == ("running", 1)
        gate.open()
        assert (await client.wait(task.id)).attempt == 1
    assert events.all("lease.lost") == []


async def test_a_lease_that_another_worker_has_is_found_lost_and_nothing_is_settled(
    client: CairnQ, make_rig: MakeRig, store: PostgresStore, events: Recorder
) -> None:
    registry, gate, flagged = Registry(), Gate(), []

    @registry.task
    async def held(ctx: TaskContext, payload: Any) -> None:
        try:
            await gate(ctx, payload)
        except asyncio.CancelledError:
            flagged.append((ctx.lost_lease, ctx.lease_lost.is_set()))
            for write in (ctx.succeed(1), ctx.fail(), ctx.progress(0.5), ctx.heartbeat(), ctx.submit("held")):
                with pytest.raises(LostLease):
                    await write
            raise

    async with make_rig(registry) as rig:
        task = await client.submit("held")
        ctx = await gate.entered()
        await move_to_another_worker(store, task.id)
        report = await rig.beat()
        assert [held.task_id for held in report.lost] == [task.id]
        await soon(ctx.lease_lost.wait())
        assert "somebody else" in (await events.wait("lease.lost"))["reason"]
        assert len(rig.table.entries()) == 0
    assert flagged == [(True, True)], "flagged first, then cancelled"
    row = await client.get(task.id)
    assert row is not None
    assert (row.status, row.worker_id, row.result, row.progress) == ("running", "worker_OTHER", None, None)


async def test_trust_ends_by_the_local_clock_alone(client: CairnQ, make_rig: MakeRig, events: Recorder) -> None:
    registry, gate = Registry(), Gate()
    registry.register("held", gate)
    async with make_rig(registry, lease_s=30.0) as rig:
        task = await client.submit("held", 1)
        ctx = await gate.entered()
        rig.clock.ahead = 24.0
        rig.engine.leases_changed()
        assert not ctx.lost_lease
        rig.clock.ahead = 25.1  # lease 30 s, margin 5 s
        assert ctx.lost_lease, "judged at the use; no timer had to fire"
        with pytest.raises(LostLease):
            await ctx.progress(0.5)
        await events.wait("lease.lost")
    assert gate.cancelled == 1
    row = await client.get(task.id)
    assert row is not None
    assert (row.status, row.progress, row.result) == ("running", None, None), "left to the expiry of its lease"


async def test_a_result_that_comes_after_the_trust_ended_is_not_written(
    client: CairnQ, make_rig: MakeRig, events: Recorder
) -> None:
    registry, gate = Registry(), Gate()
    registry.register("held", gate)
    async with make_rig(registry, lease_s=30.0) as rig:
        task = await client.submit("held", 1)
        await gate.entered()
        rig.clock.ahead = 26.0
        gate.open()
        lost = await events.wait("lease.lost")
    assert "trust window" in lost["reason"]
    row = await client.get(task.id)
    assert row is not None
    assert (row.status, row.result) == ("running", None)


async def test_a_beat_extends_the_trust_from_when_it_was_sent(client: CairnQ, make_rig: MakeRig) -> None:
    registry, gate = Registry(), Gate()
    registry.register("held", gate)
    async with make_rig(registry, lease_s=30.0) as rig:
        task = await client.submit("held", 1)
        ctx = await gate.entered()
        rig.clock.ahead = 20.0
        assert (await rig.beat()).renewed == 1
        rig.clock.ahead = 44.0
        assert not ctx.lost_lease
        gate.open()
        assert (await client.wait(task.id)).succeeded


async def test_rows_that_arrive_late_are_beaten_before_they_start(
    client: CairnQ, make_rig: MakeRig, store: Any, events: Recorder
) -> None:
    registry, order = Registry(), []
    claim_many, beat_many = store.claim_many, store.beat_many

    @registry.task
    async def late(ctx: TaskContext) -> None:
        rig.clock.ahead += 20.0  # more than the claim alone was good for
        order.append(f"started with {'trust' if not ctx.lost_lease else 'none'}")

    async with make_rig(registry, lease_s=30.0) as rig:

        async def slow_claim(*arguments: Any) -> Any:
            rows = await claim_many(*arguments)
            if rows:
                rig.clock.ahead += 18.0  # the reply was on its way for so long: 7 s of 25 are left
            return rows

        async def beat(beats: Any) -> Any:
            order.append("beat")
            return await beat_many(beats)

        store.claim_many, store.beat_many = slow_claim, beat
        task = await client.submit("late")
        assert (await client.wait(task.id)).succeeded
    assert order == ["beat", "started with trust"]
    assert events.all("lease.lost") == []


async def test_rows_that_arrive_too_late_never_start(
    client: CairnQ, make_rig: MakeRig, store: Any, events: Recorder
) -> None:
    registry, started = Registry(), []
    claim_many, beat_many = store.claim_many, store.beat_many
    registry.register("late", lambda ctx: started.append(ctx.attempt))

    async def refused(beats: Any) -> Any:
        await beat_many(beats)
        store.beat_many = beat_many
        return [None] * len(beats)

    async with make_rig(registry, lease_s=30.0) as rig:

        async def slow_claim(*arguments: Any) -> Any:
            rows = await claim_many(*arguments)
            if rows:
                rig.clock.ahead += 18.0
                store.claim_many = claim_many
            return rows

        store.claim_many, store.beat_many = slow_claim, refused
        task = await client.submit("late")
        assert (await client.wait(task.id)).succeeded
    assert started == [1], "given back unstarted, then claimed again: the same attempt number"


@pytest.mark.postgres
async def test_a_locked_row_is_neither_lost_nor_renewed(
    client: CairnQ, make_rig: MakeRig, database: str, server: Any, events: Recorder
) -> None:
    registry, gate = Registry(), Gate()
    registry.register("held", gate)
    async with make_rig(registry, lease_s=30.0) as rig:
        task = await client.submit("held", 1)
        await gate.entered()
        [entry] = rig.table.entries()
        with server.connect(database.rsplit("/", 1)[1]) as other, other.transaction():
            other.execute("select 1 from cairnq_tasks where id = %s for update", [task.id])
            report = await rig.beat()
            assert (report.renewed, report.lost, len(report.unsure)) == (0, (), 1)
            assert report.retry_within_s == 3.0
            assert rig.table.trusted_until(entry.slot) == entry.trusted_until
            gate.open()  # the settlement meets the same lock
        assert (await client.wait(task.id)).succeeded
    assert events.all("lease.lost") == []


async def test_a_cancel_request_comes_with_the_beat(client: CairnQ, make_rig: MakeRig) -> None:
    registry, gate = Registry(), Gate()
    registry.register("held", gate)
    async with make_rig(registry) as rig:
        task = await client.submit("held")
        ctx = await gate.entered()
        await client.cancel(task.id)
        assert await ctx.canceled() is False
        report = await rig.beat()
        assert report.changed == {rig.worker_id}
        assert await ctx.canceled() is True
        assert (await rig.beat()).changed == frozenset(), "told once"
        gate.open()
        assert (await client.wait(task.id)).canceled


async def test_a_batch_goes_on_with_what_it_still_holds(
    client: CairnQ, make_rig: MakeRig, store: PostgresStore, events: Recorder
) -> None:
    registry, gate = Registry(), Gate()
    registry.register("many", gate.batch, batch=3)
    async with make_rig(registry) as rig:
        tasks = await client.submit_many([{"name": "many", "payload": number} for number in range(3)])
        contexts = await gate.entered()
        await move_to_another_worker(store, tasks[1].id)
        await rig.beat()
        await events.wait("lease.lost")
        assert [ctx.lost_lease for ctx in contexts] == [False, True, False]
        gate.open()
        assert [(await client.wait(tasks[number].id)).result for number in (0, 2)] == [0, 2]
    assert gate.cancelled == 0
    assert (await client.get(tasks[1].id)).worker_id == "worker_OTHER"  # type: ignore[union-attr]


async def test_a_thread_that_lost_its_lease_settles_nothing(
    client: CairnQ, make_rig: MakeRig, store: PostgresStore, events: Recorder
) -> None:
    registry, gate = Registry(), ThreadGate()
    registry.register("held", gate)
    async with make_rig(registry) as rig:
        task = await client.submit("held", 1)
        ctx = await gate.entered()
        await move_to_another_worker(store, task.id)
        await rig.beat()
        assert ctx.lease_lost.wait(10)
        assert rig.table.in_flight_calls == 1, "its thread is still there"
        gate.open()
        await until(lambda: rig.table.in_flight_calls == 0, rig.engine._changed)
    row = await client.get(task.id)
    assert row is not None
    assert (row.worker_id, row.result) == ("worker_OTHER", None)


@pytest.mark.postgres
async def test_a_row_that_stays_locked_does_not_hold_up_the_beats_of_the_others(
    client: CairnQ, make_worker: MakeWorker, database: str, server: Any, events: Recorder
) -> None:
    worker, gate = make_worker(lease_ms=6000, heartbeat_interval_ms=200, concurrency=2), Gate()
    worker.register("held", gate)
    async with worker.background():
        locked, other = await client.submit("held", 1), await client.submit("held", 2)
        contexts = {ctx.task_id: ctx for ctx in (await gate.entered(), await gate.entered())}
        with server.connect(database.rsplit("/", 1)[1]) as admin, admin.transaction():
            admin.execute("select 1 from cairnq_tasks where id = %s for update", [locked.id])
            running = await client.get(other.id)
            assert running is not None
            until_ms = (running.lease_until_ms or 0) + 1500
            while (running := await client.get(other.id)) is not None and (running.lease_until_ms or 0) < until_ms:
                assert not contexts[locked.id].lease_lost.is_set(), "the other row waited for this one"
        gate.open()
        assert (await client.wait(other.id)).attempt == 1
        assert (await client.wait(locked.id)).attempt == 1
    assert events.all("lease.lost") == []


async def test_a_write_that_outlasts_the_trust_is_rolled_back_though_the_database_would_take_it(
    client: CairnQ, make_rig: MakeRig, store: Any, events: Recorder
) -> None:
    registry, raised = Registry(), []

    @registry.task
    async def slow(ctx: TaskContext) -> None:
        async def write(session: Any) -> str:
            await session.execute("update cairnq_meta set value = value")
            rig.clock.ahead = 26.0
            return "too late"

        try:
            await ctx.succeed_in(write)
        except BaseException:  # LostLease, or the cancellation that follows it
            raised.append(ctx.lost_lease)
            raise

    async with make_rig(registry, lease_s=30.0) as rig:
        task = await client.submit("slow")
        await events.wait("lease.lost")
        await until(lambda: bool(raised), rig.engine._changed)
    row = await client.get(task.id)
    assert row is not None
    assert (row.status, row.result, raised) == ("running", None, [True])


async def test_what_was_given_up_as_lost_is_not_given_back_while_its_thread_runs(
    client: CairnQ, make_rig: MakeRig, store: Any, events: Recorder
) -> None:
    registry, gate = Registry(), ThreadGate()
    registry.register("stuck", gate)
    registry.register("next", lambda _ctx: "next")
    async with make_rig(registry, lease_s=30.0, concurrency=2) as rig:
        stuck = await client.submit("stuck")
        await gate.entered()
        rig.clock.ahead = 26.0
        await events.wait("lease.lost")
        await rig.beat()
        lose_next_reply(store, "claim_many")
        assert await client.call("next") == "next"
        await events.wait("database.recovered")
        row = await client.get(stuck.id)
        assert row is not None
        assert (row.status, row.attempt) == ("running", 1)
        assert gate.none_entered, "two threads run it at once"
        gate.open()


async def test_after_a_lease_ran_out_nothing_is_claimed_before_somebody_beats(
    client: CairnQ, make_rig: MakeRig, events: Recorder
) -> None:
    registry, gate = Registry(), Gate()
    registry.register("held", gate)
    registry.register("next", lambda _ctx: "next")
    async with make_rig(registry, lease_s=9.0, concurrency=2, poll_interval_s=3600.0) as rig:
        await client.submit("held")
        rig.engine.wake()
        await gate.entered()
        rig.clock.ahead = 8.0
        await events.wait("lease.lost")
        waits = await client.submit("next")
        rig.engine.wake()
        for _ in range(20):
            assert (await client.get(waits.id)).status == "queued"  # type: ignore[union-attr]
        await rig.beat()
        assert (await client.wait(waits.id)).result == "next"


async def test_a_verdict_reaches_the_loop_without_waiting_for_its_alarm(
    client: CairnQ, make_worker: MakeWorker, store: Any
) -> None:
    worker, gate = make_worker(lease_ms=180_000, heartbeat_interval_ms=100), Gate()
    worker.register("held", gate)
    async with worker.background():
        task = await client.submit("held")
        ctx = await gate.entered()
        await move_to_another_worker(store, task.id)
        await soon(ctx.lease_lost.wait())  # its alarm goes off once a minute
    assert gate.cancelled == 1
