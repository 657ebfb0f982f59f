"""Tasks held ahead of their turn: many while calls are short, none while they are not, and all back unspent in time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cairnq import CairnQ, Registry, TaskContext
from cairnq.run import line
from cairnq.run.leases import LeaseState
from cairnq.run.settler import Settler
from tests.support.gates import PATIENCE_S, Gate, Recorder, soon
from tests.support.rigs import MakeRig, Rig

SLOTS = 600


@pytest.fixture
async def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is held ahead is not given back for having waited."""
    monkeypatch.setattr(line, "PATIENCE_S", 3600.0)


async def submit(client: CairnQ, count: int, name: str = "x", **options: Any) -> list[str]:
    tasks = await client.submit_many([{"name": name, "payload": number, **options} for number in range(count)])
    return [task.id for task in tasks]


async def counted(client: CairnQ, expected: dict[str, int]) -> None:
    """Until the queue's counts are these."""
    async with asyncio.timeout(PATIENCE_S):
        while await _counts(client) != expected:
            pass


async def held(client: CairnQ, rig: Rig, count: int) -> None:
    """Until the worker has entered as many into its lease table."""
    async with asyncio.timeout(PATIENCE_S):
        while len(rig.table.entries()) != count:
            await client.stats()  # lets the worker turn


async def _counts(client: CairnQ) -> dict[str, int]:
    return {status: count for status, count in (await client.stats()).get("default", {}).items() if count}


def sizes_of_claims(store: Any) -> list[int]:
    """How many tasks each claim brought that brought some."""
    sizes: list[int] = []
    claim_many, settle_and_claim = store.claim_many, store.settle_and_claim

    async def claim(*arguments: Any) -> Any:
        found = await claim_many(*arguments)
        sizes.extend([len(found)] if found else [])
        return found

    async def exchange(*arguments: Any) -> Any:
        found = await settle_and_claim(*arguments)
        sizes.extend([len(found[1])] if found and found[1] else [])
        return found

    store.claim_many, store.settle_and_claim = claim, exchange
    return sizes


async def test_a_worker_learns_that_its_calls_are_short(client: CairnQ, store: Any, make_rig: MakeRig) -> None:
    registry, sizes = Registry(), sizes_of_claims(store)
    await submit(client, 500)

    @registry.task
    async def x(_ctx: TaskContext) -> None:
        await asyncio.sleep(0)

    async with make_rig(registry, concurrency=4, slots=SLOTS):
        await counted(client, {"succeeded": 500})
    assert sizes[:2] == [4, 4], "nothing is known at first"
    assert max(sizes) > 4


async def test_short_calls_are_claimed_by_many_and_run_by_few(client: CairnQ, store: Any, make_rig: MakeRig) -> None:
    registry, sizes, inside, most = Registry(), sizes_of_claims(store), set(), 0
    await submit(client, 400)

    @registry.task
    async def x(ctx: TaskContext) -> None:
        nonlocal most
        inside.add(ctx.task_id)
        most = max(most, len(inside))
        await asyncio.sleep(0)
        inside.remove(ctx.task_id)

    async with make_rig(registry, concurrency=4, slowness=1000.0, slots=SLOTS) as rig:
        rig.teach_that_calls_are_short()
        await counted(client, {"succeeded": 400})
    assert most == 4
    assert len(sizes) < 10, "a claim for each round of slots would make 100"


async def test_calls_that_do_not_return_are_not_claimed_ahead(client: CairnQ, make_rig: MakeRig) -> None:
    registry, gate = Registry(), Gate()
    registry.register("x", gate)
    await submit(client, 10)
    async with make_rig(registry, concurrency=2, slots=SLOTS) as rig:
        await gate.entered()
        await gate.entered()
        await counted(client, {"running": 2, "queued": 8})
        assert rig.table.in_flight_calls == 2


async def test_what_does_not_get_its_turn_soon_goes_back_unspent(client: CairnQ, make_rig: MakeRig) -> None:
    """Calls were short, and are not any more."""
    registry, gate = Registry(), Gate()
    registry.register("x", gate)
    ids = await submit(client, 30, max_attempts=1)
    async with make_rig(registry, concurrency=2, slots=SLOTS) as rig:
        rig.teach_that_calls_are_short()
        await gate.entered()
        await counted(client, {"running": 2, "queued": 28})
        assert {(await client.get(task_id)).attempt for task_id in ids[2:]} == {0}  # type: ignore[union-attr]
        await held(client, rig, 2)
        assert rig.table.in_flight_calls == 2
        gate.open()
        await counted(client, {"succeeded": 30})
    assert gate.most_inside == 2


@pytest.mark.usefixtures("patience")
async def test_a_pause_gives_back_at_once_what_has_not_started(client: CairnQ, make_rig: MakeRig) -> None:
    registry, gate = Registry(), Gate()
    registry.register("x", gate)
    await submit(client, 30)
    async with make_rig(registry, concurrency=2, slots=SLOTS) as rig:
        rig.teach_that_calls_are_short()
        await gate.entered()
        await held(client, rig, 30)
        assert rig.table.in_flight_calls == 2, "what is held ahead is not in flight"
        rig.engine.quiesce()
        await counted(client, {"running": 2, "queued": 28})
        rig.engine.resume()
        gate.open()
        await counted(client, {"succeeded": 30})
    assert gate.most_inside == 2


@pytest.mark.usefixtures("patience")
async def test_a_drain_gives_back_at_once_what_has_not_started(client: CairnQ, make_rig: MakeRig) -> None:
    registry, gate = Registry(), Gate()
    registry.register("x", gate)
    await submit(client, 30)
    async with make_rig(registry, concurrency=2, slots=SLOTS) as rig:
        rig.teach_that_calls_are_short()
        await gate.entered()
        await held(client, rig, 30)
        draining = asyncio.create_task(rig.engine.drain(float("inf")))
        await counted(client, {"running": 2, "queued": 28})
        gate.open()
        assert await soon(draining) == []
    await counted(client, {"succeeded": 2, "queued": 28})


@pytest.mark.usefixtures("patience")
async def test_the_lease_table_knows_what_has_not_started(client: CairnQ, make_rig: MakeRig) -> None:
    """By which the heir of a worker that died tells what to give back unspent."""
    registry, gate = Registry(), Gate()
    registry.register("x", gate)
    ids = await submit(client, 30)
    async with make_rig(registry, concurrency=2, slots=SLOTS) as rig:
        rig.teach_that_calls_are_short()
        started = {(await gate.entered()).task_id for _ in range(2)}
        await held(client, rig, 30)
        states = {entry.task_id: entry.state for entry in rig.table.entries()}
        assert {task_id for task_id, state in states.items() if state is LeaseState.STARTED} == started
        assert {states[task_id] for task_id in set(ids) - started} == {LeaseState.CLAIMED}


@pytest.mark.usefixtures("patience")
async def test_a_lease_that_is_not_trusted_any_more_never_starts(
    client: CairnQ, make_rig: MakeRig, events: Recorder
) -> None:
    registry, gate = Registry(), Gate()
    registry.register("x", gate)
    await submit(client, 10)
    async with make_rig(registry, concurrency=2, slots=SLOTS) as rig:
        rig.teach_that_calls_are_short()
        for _ in range(2):
            await gate.entered()
        await held(client, rig, 10)
        rig.clock.ahead += 3600
        rig.engine.leases_changed()
        assert len(events.all("lease.lost")) == 10
        assert len(rig.table.entries()) == 0
        assert gate.none_entered


@pytest.mark.usefixtures("patience")
async def test_the_order_of_the_claim_is_kept_across_names(client: CairnQ, make_rig: MakeRig) -> None:
    registry, order = Registry(), []

    async def note(ctx: TaskContext, payload: int) -> None:
        order.append(payload)

    for name in ("a", "b", "c"):
        registry.register(name, note)
    await client.submit_many(
        [{"name": "abc"[number % 3], "payload": number, "priority": -number // 4} for number in range(24)]
    )
    async with make_rig(registry, concurrency=1, slots=SLOTS) as rig:
        rig.teach_that_calls_are_short()
        await counted(client, {"succeeded": 24})
    assert order == sorted(order)


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(
    "quota", [{"concurrency": 2}, {"resource": "gpu"}, {"batch": 2}], ids=lambda quota: next(iter(quota))
)
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another"])
async def test_a_name_with_a_quota_is_not_claimed_ahead(
    client: CairnQ, make_rig: MakeRig, quota: dict[str, Any], beside: bool
) -> None:
    registry, gate = Registry(resources={"gpu": 2}), Gate()
    registry.register("x", gate.batch if "batch" in quota else gate, **quota)
    if beside:
        registry.register("y", gate)
    await submit(client, 12)
    async with make_rig(registry, concurrency=2, slots=SLOTS) as rig:
        rig.teach_that_calls_are_short()
        for _ in range(2):
            await gate.entered()
        size = quota.get("batch", 1)
        await counted(client, {"running": 2 * size, "queued": 12 - 2 * size})
        rig.engine.wake()
        gate.open()
        await counted(client, {"succeeded": 12})
    assert gate.most_inside == 2


@pytest.mark.usefixtures("patience")
async def test_what_is_forgotten_may_be_claimed_ahead(client: CairnQ, make_rig: MakeRig) -> None:
    registry = Registry()
    registry.register("x", lambda _ctx: None, forget=True)
    await submit(client, 100)
    async with make_rig(registry, concurrency=2, slots=SLOTS) as rig:
        rig.teach_that_calls_are_short()
        await counted(client, {})
    assert rig.table.succeeded == 100


@pytest.mark.usefixtures("patience")
async def test_where_calls_end_together_the_next_have_started_before_the_outcomes_are_chosen(
    client: CairnQ, make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, said, gates, put = Registry(), list[str](), (asyncio.Event(), asyncio.Event()), Settler.put

    def noted(settler: Settler, *arguments: Any) -> None:
        said.append("outcome")
        put(settler, *arguments)

    @registry.task
    async def x(_ctx: TaskContext, payload: int) -> None:
        said.append("start")
        await gates[payload // 3].wait()

    monkeypatch.setattr(Settler, "put", noted)
    await submit(client, 6)
    async with make_rig(registry, concurrency=3, slots=SLOTS) as rig:
        rig.teach_that_calls_are_short()
        await held(client, rig, 6)
        gates[0].set()
        await counted(client, {"succeeded": 3, "running": 3})
        assert said == ["start"] * 6 + ["outcome"] * 3
        gates[1].set()
        await counted(client, {"succeeded": 6})
