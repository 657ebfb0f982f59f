"""A reply is lost: what the statement did is read back from the database before anybody believes anything."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cairnq import CairnQ, DatabaseUnavailable, LostLease, Registry, TaskContext
from cairnq.run.leases import LeaseState
from cairnq.store.postgres import PostgresStore
from tests.support.gates import Gate, Recorder, soon
from tests.support.proxy import Proxy
from tests.support.rigs import MakeRig, Rig, let_lapse, lose_next_reply, move_to_another_worker
from tests.worker.conftest import MakeWorker

pytestmark = pytest.mark.postgres


async def test_a_claim_without_a_reply_is_given_back_and_claimed_again(
    store: Any, client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    worker, runs = make_worker(), []
    worker.register("x", lambda ctx: runs.append(ctx.attempt))
    task = await client.submit("x")
    lose_next_reply(store, "claim_many")
    async with worker.background():
        ended = await client.wait(task.id)
    assert (ended.status, ended.attempt) == ("succeeded", 1), "the lost claim's attempt was given back"
    assert runs == [1]
    assert len(events.all("database.failed")) == len(events.all("database.recovered")) == 1


async def test_nothing_is_claimed_until_a_lost_release_is_known_to_have_happened(
    store: Any, client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    worker, order, claim_many = make_worker(), [], store.claim_many
    worker.register("x", lambda ctx: order.append(f"ran attempt {ctx.attempt}"))
    release_many, held_by = store.release_many, store.held_by

    async def note_claim(*arguments: Any) -> Any:
        rows = await claim_many(*arguments)
        order.append(f"claimed {len(rows)}")
        return rows

    async def note_release(*arguments: Any) -> Any:
        order.append("released")
        return await release_many(*arguments)

    async def note_read(*arguments: Any) -> Any:
        held = await held_by(*arguments)
        order.append(f"read {len(held)}")
        return held

    task = await client.submit("x")
    store.claim_many, store.release_many, store.held_by = note_claim, note_release, note_read
    lose_next_reply(store, "claim_many")
    lose_next_reply(store, "release_many")
    async with worker.background():
        assert (await client.wait(task.id)).attempt == 1
    assert order[:6] == ["claimed 1", "read 1", "released", "read 0", "claimed 1", "ran attempt 1"]


async def test_a_claim_whose_reply_never_comes_is_given_up_and_cleared_up_after(
    far_store: Any, proxy: Proxy, client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    worker, runs, original = make_worker(store=far_store, lease_ms=1500), [], far_store.claim_many
    worker.register("x", lambda ctx: runs.append(ctx.attempt))
    task = await client.submit("x")
    hang = asyncio.Event()

    async def endless_claim(*arguments: Any) -> Any:
        far_store.claim_many = original
        await original(*arguments)
        await hang.wait()

    far_store.claim_many = endless_claim
    async with worker.background():
        ended = await client.wait(task.id)
    assert (ended.status, ended.attempt) == ("succeeded", 1)
    assert runs == [1]
    assert any("a claim had no reply within 1.25 s" in str(event["error"]) for event in events.all("database.failed"))


@pytest.mark.parametrize("settle_by", ["returning", "succeed", "succeed_in"])
async def test_a_settlement_without_a_reply_is_not_taken_for_a_lost_lease(
    store: Any, client: CairnQ, make_worker: MakeWorker, events: Recorder, settle_by: str
) -> None:
    worker = make_worker()

    @worker.task
    async def x(ctx: TaskContext) -> str:
        async def write(session: Any) -> str:
            await session.execute("select 1")
            return "once"

        if settle_by == "succeed":
            assert (await ctx.succeed("once")).succeeded  # type: ignore[union-attr]
        elif settle_by == "succeed_in":
            assert (await ctx.succeed_in(write)).succeeded  # type: ignore[union-attr]
        return "once"

    store.exchanges = False
    lose_next_reply(store, "complete_in" if settle_by == "succeed_in" else "settle_many")
    async with worker.background():
        ended = await client.wait((await client.submit("x")).id)
    assert (ended.status, ended.result, ended.attempt) == ("succeeded", "once", 1)
    assert events.all("lease.lost") == []
    assert events.all("task.left") == []
    assert events.all("task.failed") == []


async def test_a_succeed_in_that_lost_its_connection_before_the_commit_can_be_tried_again(
    far_store: PostgresStore, proxy: Proxy, client: CairnQ, make_worker: MakeWorker
) -> None:
    worker, gate, failures = make_worker(store=far_store, lease_ms=60_000), Gate(), []

    @worker.task
    async def careful(ctx: TaskContext, payload: Any) -> None:
        async def write(session: Any) -> str:
            if not failures:
                await gate(ctx, payload)
            return "second time"

        try:
            await ctx.succeed_in(write)
        except DatabaseUnavailable as error:
            failures.append(error)
            assert not ctx.settled
            await ctx.succeed_in(write)

    async with worker.background():
        task = await client.submit("careful")
        await gate.entered()
        proxy.reset()
        gate.open()
        assert (await client.wait(task.id)).result == "second time"
    assert len(failures) == 1


async def test_a_succeed_in_that_failed_before_its_commit_leaves_the_attempt_as_it_was(
    store: Any, client: CairnQ, make_worker: MakeWorker
) -> None:
    worker, complete_in, states = make_worker(), store.complete_in, []

    async def fail_before_the_commit(task_id: str, worker_id: str, write: Any, *, attempt: int) -> Any:
        async def write_and_fail(session: Any) -> None:
            await write(session)
            raise DatabaseUnavailable("gone before the commit")

        store.complete_in = complete_in
        return await complete_in(task_id, worker_id, write_and_fail, attempt=attempt)

    @worker.task
    async def careful(ctx: TaskContext) -> None:
        async def write(session: Any) -> str:
            await session.execute("select 1")
            return "second time"

        with pytest.raises(DatabaseUnavailable, match="before the commit"):
            await ctx.succeed_in(write)
        [entry] = ctx._attempt.table.entries()
        states.append((ctx.settled, entry.state))
        await ctx.succeed_in(write)

    store.complete_in = fail_before_the_commit
    async with worker.background():
        assert await client.call("careful") == "second time"
    assert states == [(False, LeaseState.STARTED)]


class LosingItsCommit:
    """A handler whose `succeed_in` gets no reply to its commit; the transaction was rolled back, or was not."""

    def __init__(self, store: Any, *, commits: bool) -> None:
        self._store = store
        self._commits = commits
        self._complete_in = store.complete_in
        self.in_doubt = asyncio.Event()
        self.answer = asyncio.Event()
        self.outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        store.complete_in = self._cut_off

    async def __call__(self, ctx: TaskContext) -> None:
        async def write(session: Any) -> str:
            await session.execute("select 1")
            return "mine"

        try:
            self.outcome.set_result(await ctx.succeed_in(write))
        except BaseException as error:
            self.outcome.set_result(error)
            raise

    async def _cut_off(self, task_id: str, worker_id: str, write: Any, *, attempt: int) -> Any:
        async def write_and_fail(session: Any) -> Any:
            value = await write(session)
            if not self._commits:
                raise DatabaseUnavailable("reset before the commit")
            return value

        self._store.complete_in = self._complete_in
        try:
            await self._complete_in(task_id, worker_id, write_and_fail, attempt=attempt)
            raise DatabaseUnavailable("reset after the commit")
        finally:
            self.in_doubt.set()
            await self.answer.wait()


async def cancel(store: Any, task_id: str) -> None:
    await store.cancel(task_id)


async def recover(store: Any, task_id: str) -> None:
    await let_lapse(store, task_id)
    await store.recover()


async def cancel_and_recover(store: Any, task_id: str) -> None:
    await cancel(store, task_id)
    await recover(store, task_id)


async def recover_and_purge(store: Any, task_id: str) -> None:
    await cancel_and_recover(store, task_id)
    assert await store.purge() == [task_id]


def end_trust(rig: Rig) -> None:
    rig.clock.ahead += 3600


@pytest.mark.parametrize(
    "meanwhile", [move_to_another_worker, recover, cancel_and_recover, recover_and_purge, let_lapse]
)
async def test_a_succeed_in_that_was_rolled_back_is_never_told_as_a_success(
    store: Any, client: CairnQ, make_rig: MakeRig, meanwhile: Any
) -> None:
    registry, handler = Registry(), LosingItsCommit(store, commits=False)
    registry.register("x", handler)
    async with make_rig(registry) as rig:
        task = await client.submit("x")
        await soon(handler.in_doubt.wait())
        rig.engine.quiesce()
        await meanwhile(store, task.id)
        end_trust(rig)
        handler.answer.set()
        assert isinstance(await soon(handler.outcome), LostLease)
        assert rig.table.succeeded == 0


@pytest.mark.parametrize("asked_to_cancel", [False, True])
async def test_a_succeed_in_that_was_committed_is_told_as_what_the_row_says(
    store: Any, client: CairnQ, make_rig: MakeRig, events: Recorder, asked_to_cancel: bool
) -> None:
    registry, gate, handler = Registry(), Gate(), LosingItsCommit(store, commits=True)

    @registry.task
    async def x(ctx: TaskContext, payload: Any) -> None:
        await gate(ctx, payload)
        await handler(ctx)

    async with make_rig(registry) as rig:
        task = await client.submit("x")
        await gate.entered()
        if asked_to_cancel:
            await client.cancel(task.id)
        gate.open()
        await soon(handler.in_doubt.wait())
        if not asked_to_cancel:
            end_trust(rig)  # what is proven needs no trust
        handler.answer.set()
        told = await soon(handler.outcome)
        assert told.status == ("canceled" if asked_to_cancel else "succeeded")
    assert events.all("lease.lost") == []
