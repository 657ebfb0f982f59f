"""Suspects run alone: in a worker that is there for them, or in any other while it runs nothing."""

from __future__ import annotations

from typing import Any

import pytest

from cairnq import CairnQ, Registry, TaskContext
from tests.support.gates import Gate
from tests.support.rigs import MakeRig
from tests.support.suspects import suspect
from tests.worker.conftest import MakeWorker

LEASE_MS = 1_500
"""Suspects are looked for at a third of it."""


async def tasks_of(client: CairnQ, ids: list[str]) -> list[Any]:
    return [await client.wait(task_id) for task_id in ids]


async def test_a_worker_takes_a_suspect_when_it_runs_nothing_and_nothing_beside_it(
    client: CairnQ, make_worker: MakeWorker, store: Any
) -> None:
    first, second = (make_worker(concurrency=4, lease_ms=LEASE_MS) for _ in range(2))
    gate, others = Gate(), Gate()
    first.register("gate", gate)
    for worker in (first, second):
        worker.register("other", others)
    task_id = await suspect(store, "gate", "good after all")
    async with first.background():
        ctx = await gate.entered()
        assert (ctx.task_id, ctx.attempt) == (task_id, 1)
        made = await client.submit_many([{"name": "other"} for _ in range(20)])
        others.open()
        async with second.background():
            done = await tasks_of(client, [task.id for task in made])
            assert {task.worker_id for task in done} == {second.worker_id}
        gate.open()
        assert (await client.wait(task_id)).result == "good after all"
        assert (await client.call("other", 7)) == 7, "and it goes on as before"
    assert gate.most_inside == 1


async def test_a_suspect_waits_while_the_worker_runs_anything(
    client: CairnQ, make_worker: MakeWorker, store: Any
) -> None:
    busy, gate = Gate(), Gate()
    worker = make_worker(concurrency=4, lease_ms=LEASE_MS)
    worker.register("busy", busy)
    looks = claims = 0
    look, claim = type(store).suspect_waits, type(store).claim_many

    async def counted(self: Any, queues: Any, names: Any) -> bool:
        nonlocal looks
        looks += 1
        return bool(await look(self, queues, names))

    async def claiming(self: Any, *arguments: Any) -> Any:
        nonlocal claims
        claims += 1
        return await claim(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(store), "suspect_waits", counted)
        patch.setattr(type(store), "claim_many", claiming)
        async with worker.background():
            long = await client.submit("busy")
            await busy.entered()
            task_id = await suspect(store, "gate")
            worker.register("gate", gate)
            seen = looks
            while looks < seen + 2:
                row = await client.get(task_id)
                assert row is not None
                assert row.queued
            assert claims < 100, "its polls, and not one after the other for as long as a suspect waits"
            busy.open()
            gate.open()
            assert (await client.wait(task_id)).succeeded
            assert (await client.wait(long.id)).succeeded


async def test_suspects_follow_each_other_while_there_is_nothing_else(
    client: CairnQ, make_worker: MakeWorker, store: Any
) -> None:
    worker, gate = make_worker(concurrency=4, lease_ms=LEASE_MS), Gate()
    worker.register("gate", gate)
    ids = [await suspect(store, "gate", number) for number in range(5)]
    gate.open()
    async with worker.background():
        assert [task.result for task in await tasks_of(client, ids)] == [0, 1, 2, 3, 4]
    assert gate.most_inside == 1


async def test_marked_once_they_run_side_by_side(client: CairnQ, make_worker: MakeWorker, store: Any) -> None:
    worker, gate = make_worker(concurrency=3), Gate()
    worker.register("gate", gate)
    for _ in range(3):
        await suspect(store, "gate", deaths=1)
    async with worker.background():
        for _ in range(3):
            await gate.entered()
        assert gate.inside == 3
        gate.open()


async def test_a_worker_for_suspects_takes_nothing_else_and_one_at_a_time(
    client: CairnQ, make_rig: MakeRig, store: Any
) -> None:
    registry, gate, usual = Registry(), Gate(), Registry()
    registry.register("gate", gate)

    @usual.task("gate")
    async def other(ctx: TaskContext, payload: Any) -> Any:
        return payload

    ids = [await suspect(store, "gate", number) for number in range(3)]
    async with make_rig(registry, concurrency=4, suspects_only=True) as apart, make_rig(usual, concurrency=4) as rig:
        await gate.entered()
        made = await client.submit_many([{"name": "gate", "payload": number} for number in range(10)])
        done = await tasks_of(client, [task.id for task in made])
        assert {task.worker_id for task in done} == {rig.worker_id}
        gate.open()
        assert {task.worker_id for task in await tasks_of(client, ids)} == {apart.worker_id}
    assert gate.most_inside == 1


async def test_a_batch_handler_gets_a_suspect_by_itself(client: CairnQ, make_rig: MakeRig, store: Any) -> None:
    registry, sizes = Registry(), []

    @registry.task(batch=5)
    async def many(contexts: list[TaskContext]) -> None:
        sizes.append(len(contexts))

    ids = [await suspect(store, "many") for _ in range(3)]
    async with make_rig(registry, suspects_only=True):
        assert all(task.succeeded for task in await tasks_of(client, ids))
    assert sizes == [1, 1, 1]
