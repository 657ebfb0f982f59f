"""The engine's own switches, and what it does with rows that wait, are locked, or lapse while they are settled."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from cairnq import CairnQ, DatabaseUnavailable, Registry, TaskContext, Worker
from cairnq.run.engine import EngineOptions
from tests.store.postgres.executors import opened
from tests.support.gates import Gate, Recorder, soon, until
from tests.support.rigs import MakeRig, Rig, let_lapse, move_to_another_worker
from tests.worker.conftest import MakeWorker


async def test_without_polling_it_looks_only_when_it_is_woken(client: CairnQ, make_rig: MakeRig, store: Any) -> None:
    registry, gate, looks, claim_many = Registry(), Gate(), asyncio.Queue(), store.claim_many
    registry.register("x", gate)
    gate.open()

    async def claim(*arguments: Any) -> Any:
        rows = await claim_many(*arguments)
        looks.put_nowait(len(rows))
        return rows

    async with make_rig(registry, poll_interval_s=0.01) as rig:
        await client.call("x")
        rig.engine.set_polling(False)
        claimer = rig.engine._claimer
        await until(lambda: not claimer.is_busy and claimer._looks.next_look() == float("inf"), rig.engine._changed)
        store.claim_many = claim
        task = await client.submit("x")
        assert (await client.get(task.id)).status == "queued"  # type: ignore[union-attr]
        assert looks.empty()
        rig.engine.wake()
        assert (await client.wait(task.id)).succeeded
        assert await soon(looks.get()) == 1


async def test_quiescing_gives_back_what_waits_and_resuming_takes_it_again(client: CairnQ, make_rig: MakeRig) -> None:
    registry, gate = Registry(), Gate()
    registry.register("heavy", gate)
    async with make_rig(registry, concurrency=4, max_in_flight_bytes=100) as rig:
        held = await fill_the_budget(client, gate, rig)
        waiting = [entry.task_id for entry in rig.table.entries() if entry.started_at == 0.0]
        assert waiting
        assert set(waiting) < set(held)
        rig.engine.quiesce()
        for task_id in waiting:
            row = await client.get(task_id)
            while row is not None and row.running:
                row = await client.get(task_id)
            assert row is not None
            assert (row.status, row.attempt) == ("queued", 0)
        await until(lambda: rig.table.released == len(waiting), rig.engine._changed)  # its reply is on the way
        rig.engine.resume()
        gate.open()
        assert [(await client.wait(task_id)).attempt for task_id in held] == [1] * len(held)


async def test_nothing_is_claimed_while_the_outcome_of_a_release_is_unknown(
    client: CairnQ, make_rig: MakeRig, store: Any
) -> None:
    registry, gate, order, written = Registry(), Gate(), [], asyncio.Event()
    registry.register("heavy", gate)
    claim_many, settle_many = store.claim_many, store.settle_many

    async def claim(*arguments: Any) -> Any:
        order.append("claimed")
        return await claim_many(*arguments)

    async def settle(*arguments: Any) -> Any:
        await written.wait()
        order.append("released")
        return await settle_many(*arguments)

    async with make_rig(registry, concurrency=8, max_in_flight_bytes=100) as rig:
        held = await fill_the_budget(client, gate, rig)
        await until(lambda: not rig.engine._claimer.is_busy, rig.engine._changed)
        store.claim_many, store.settle_many = claim, settle
        rig.engine.quiesce()
        rig.engine.resume()
        rig.engine._holdings.budget.remove(10_000)  # as if there were all the room in the world
        for _ in range(20):
            await client.get(held[0])
        assert order == []
        rig.engine._holdings.budget.add(10_000)
        gate.open()
        written.set()
        for task_id in held:
            await client.wait(task_id)
    assert order[0] == "released"
    assert "claimed" in order


async def test_a_waiting_row_that_is_lost_never_starts(
    client: CairnQ, make_rig: MakeRig, store: Any, events: Recorder
) -> None:
    registry, gate = Registry(), Gate()
    registry.register("heavy", gate)
    async with make_rig(registry, concurrency=4, max_in_flight_bytes=100) as rig:
        await fill_the_budget(client, gate, rig)
        waiting = [entry.task_id for entry in rig.table.entries() if entry.started_at == 0.0]
        await move_to_another_worker(store, waiting[0])
        await rig.beat()
        lost = await events.wait("lease.lost")
        assert lost["task_id"] == waiting[0]
        rig.clock.ahead = 60.0  # the others' trust ends before there is room for them
        gate.open()
        await events.wait("lease.lost", len(waiting))
    assert {fields["task_id"] for fields in events.all("lease.lost")} >= set(waiting)


async def fill_the_budget(client: CairnQ, gate: Gate, rig: Rig) -> list[str]:
    """One heavy task runs, and some that a claim brought beside it wait for its bytes."""
    small = Gate()
    rig.engine._executor._registry.register("small", small)
    small.open()
    for _ in range(60):  # a claim is sized by what payloads were like: let it expect little
        await client.call("small", 1)
    rig.engine.quiesce()
    tasks = await client.submit_many([{"name": "heavy", "payload": "x" * 60}] * 4)
    rig.engine.resume()
    await gate.entered()
    await until(lambda: len(rig.table.entries()) > 1, rig.engine._changed)
    return [task.id for task in tasks]


@pytest.mark.postgres
async def test_a_settlement_that_meets_a_lock_is_tried_until_it_is_free(
    client: CairnQ, make_rig: MakeRig, store: Any, database: str, server: Any, events: Recorder
) -> None:
    registry, gate, asked = Registry(), Gate(), asyncio.Event()
    registry.register("held", gate)
    standing_many = store.standing_many

    async def standing(*arguments: Any) -> Any:
        found = await standing_many(*arguments)
        asked.set()
        return found

    store.standing_many = standing
    async with make_rig(registry, lease_s=3.0):
        task = await client.submit("held", 1)
        await gate.entered()
        with server.connect(database.rsplit("/", 1)[1]) as other, other.transaction():
            other.execute("select 1 from cairnq_tasks where id = %s for update", [task.id])
            gate.open()
            await soon(asked.wait())
        assert (await client.wait(task.id)).attempt == 1
    assert events.all("lease.lost") == []


@pytest.mark.parametrize("how", [move_to_another_worker, let_lapse])
async def test_a_settlement_that_the_fence_refuses_is_a_lost_lease(
    client: CairnQ, make_rig: MakeRig, store: Any, events: Recorder, how: Any
) -> None:
    registry, gate, flagged = Registry(), Gate(), []

    @registry.task
    async def held(ctx: TaskContext, payload: Any) -> None:
        await gate(ctx, payload)
        try:
            await ctx.succeed("not mine any more")
        except BaseException:
            flagged.append(ctx.lost_lease)
            raise

    async with make_rig(registry) as rig:
        task = await client.submit("held")
        await gate.entered()
        await how(store, task.id)
        gate.open()
        lost = await events.wait("lease.lost")
        assert lost["task_id"] == task.id
        await until(lambda: bool(flagged), rig.engine._changed)
        assert (rig.table.succeeded, rig.table.failed) == (0, 0)
    assert flagged == [True]
    assert (await client.get(task.id)).result is None  # type: ignore[union-attr]


async def test_a_read_back_that_fails_is_asked_again(
    client: CairnQ, make_rig: MakeRig, store: Any, events: Recorder
) -> None:
    registry, gate = Registry(), Gate()
    registry.register("held", gate)
    standing_many = store.standing_many

    async def away(*_arguments: Any) -> Any:
        store.standing_many = standing_many
        raise DatabaseUnavailable("gone for a moment")

    async with make_rig(registry, lease_s=3.0):
        task = await client.submit("held")
        await gate.entered()
        await let_lapse(store, task.id)
        store.standing_many = away
        gate.open()
        await events.wait("lease.lost")
    assert len(events.all("database.failed")) == 1


@pytest.mark.postgres
async def test_a_row_that_another_locked_for_a_moment_is_settled_soon_after(
    client: CairnQ, make_rig: MakeRig, store: Any, database: str
) -> None:
    """Another worker's claim may lock it for the time of a commit. A twentieth of this lease are three minutes."""
    registry, gate, asked = Registry(), Gate(), asyncio.Queue()
    registry.register("held", gate)
    standing_many = store.standing_many

    async def ask(*arguments: Any) -> Any:
        asked.put_nowait(arguments)
        return await standing_many(*arguments)

    store.standing_many = ask
    async with make_rig(registry, lease_s=3600.0), await psycopg.AsyncConnection.connect(database) as other:
        task = await client.submit("held")
        await gate.entered()
        await other.execute("select from cairnq_tasks where id = %s for update", [task.id])
        gate.open()
        for _ in range(3):
            await soon(asked.get())
        await other.rollback()
        assert (await soon(client.wait(task.id))).succeeded


async def test_large_outcomes_are_spread_over_statements(client: CairnQ, make_rig: MakeRig, store: Any) -> None:
    registry, gate, sizes = Registry(), Gate(), []
    settle_many = store.settle_many

    @registry.task
    async def large(ctx: TaskContext, payload: Any) -> str:
        await gate(ctx, payload)
        return "x" * 7_000_000

    async def settle(worker_id: str, settlements: Any) -> Any:
        sizes.append([len(item.body) for item in settlements])
        return await settle_many(worker_id, settlements)

    store.settle_many, store.exchanges = settle, False
    async with make_rig(registry, concurrency=3):
        tasks = [await client.submit("large") for _ in range(3)]
        for _ in tasks:
            await gate.entered()
        gate.open()
        for task in tasks:
            assert (await soon(client.wait(task.id))).succeeded
    assert all(sum(batch) <= 16 * 2**20 for batch in sizes)
    assert sum(len(batch) for batch in sizes) == 3


async def test_a_second_drain_moves_the_deadline_forward(client: CairnQ, make_rig: MakeRig) -> None:
    registry, gate = Registry(), Gate()
    registry.register("held", gate)
    async with make_rig(registry) as rig:
        task = await client.submit("held")
        await gate.entered()
        slow = asyncio.create_task(rig.engine.drain(rig.clock() + 3600))
        await asyncio.sleep(0)
        assert await soon(rig.engine.drain(rig.clock())) == []
        assert await soon(slow) == []
    assert gate.cancelled == 1
    assert (await client.get(task.id)).status == "queued"  # type: ignore[union-attr]


async def test_haste_ends_the_wait_of_a_drain(client: CairnQ, make_rig: MakeRig) -> None:
    registry, gate = Registry(), Gate()
    registry.register("held", gate)
    async with make_rig(registry) as rig:
        await client.submit("held")
        await gate.entered()
        draining = asyncio.create_task(rig.engine.drain(float("inf")))
        await asyncio.sleep(0)
        rig.engine.hurry()
        assert await soon(draining) == []
    assert gate.cancelled == 1


# --- mistakes of our own surface ------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["claim_many", "settle_many", "recover"])
async def test_a_bug_ends_the_run_with_its_own_error(
    client: CairnQ, make_worker: MakeWorker, store: Any, operation: str
) -> None:
    async def buggy(*_arguments: Any) -> Any:
        raise ZeroDivisionError(f"a bug in {operation}")

    if operation == "recover":
        store.sibling = lambda: None  # the keeper then shares the store, and this mistake with it
    store.exchanges = False
    setattr(store, operation, buggy)
    worker = make_worker(lease_ms=600)
    worker.register("x", lambda _ctx: None)
    running = asyncio.create_task(worker.run())
    await client.submit("x")
    with pytest.raises(ZeroDivisionError, match=operation):
        await soon(running)


async def test_a_bug_on_the_lease_thread_ends_the_run_too(client: CairnQ, make_worker: MakeWorker, store: Any) -> None:
    make_sibling = store.sibling

    def sibling() -> Any:
        made = make_sibling()

        async def buggy(*_arguments: Any) -> Any:
            raise ZeroDivisionError("a bug on the thread")

        made.recover = buggy
        return made

    store.sibling = sibling
    worker, gate = make_worker(lease_ms=1500), Gate()
    worker.register("x", gate)
    running = asyncio.create_task(worker.run())
    task = await client.submit("x")
    with pytest.raises(ZeroDivisionError, match="a bug on the thread"):
        await soon(running)
    row = await client.get(task.id)
    assert row is not None
    assert row.attempt == 0, "without a keeper no lease is believed in for long: what ran was given back"


# --- over the caller's own driver -----------------------------------------------------------------------


@pytest.mark.postgres
async def test_over_a_callers_executor_the_worker_beats_on_its_own_loop(database: str, events: Recorder) -> None:
    async with opened(database, "dictionaries") as executor, CairnQ.postgres(executor) as client:
        worker, gate = Worker.postgres(executor, lease_ms=1500, poll_interval_ms=50), Gate()
        worker._emit = events
        worker.register("x", gate)
        async with worker.background():
            task = await client.submit("x", "kept")
            await gate.entered()
            first = await client.get(task.id)
            assert first is not None
            assert first.lease_until_ms is not None
            until_ms = first.lease_until_ms + 3000
            while (row := await client.get(task.id)) is not None and (row.lease_until_ms or 0) < until_ms:
                assert row.running
            gate.open()
            assert (await client.wait(task.id)).result == "kept"
        assert events.all("lease.lost") == []
        await worker.close()


@pytest.mark.parametrize(
    "options",
    [{"concurrency": 0}, {"lease_s": 0.1}, {"poll_interval_s": 0}, {"max_run_s": -1}, {"cancel_grace_s": 0}],
)
def test_an_engine_refuses_numbers_that_cannot_be_right(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        EngineOptions(**options)
