"""Rows that somebody wrote past the protocol: each is refused by itself, whatever else goes wrong at that moment."""

from __future__ import annotations

from typing import Any

import pytest

from cairnq import CairnQ, Registry
from tests.support.gates import Gate, Recorder, soon
from tests.support.rigs import MakeRig, let_lapse, lose_next_call, lose_next_reply
from tests.worker.conftest import MakeWorker

LONG_ID = "task_" + "X" * 100


async def make_long(store: Any, client: CairnQ) -> None:
    """A task of an id that no slot of a lease table holds."""
    task = await client.submit("x", priority=1)
    async with store._autocommit() as bound:
        sql = "update cairnq_tasks set id = $1, root_id = null where id = $2 returning id"
        await bound.session.rows(sql, [LONG_ID, task.id])


async def test_an_id_that_no_slot_holds_ends_its_task_and_not_the_worker(
    client: CairnQ, make_worker: MakeWorker, store: Any
) -> None:
    worker = make_worker()
    worker.register("x", lambda _ctx: "fine")
    await make_long(store, client)
    async with worker.background():
        assert await client.call("x") == "fine"
        ended = await client.wait(LONG_ID)
    assert (ended.status, ended.error["code"]) == ("failed", "invalid_id")


@pytest.mark.parametrize("lose", [lose_next_call, lose_next_reply])
async def test_an_outage_while_one_is_refused_holds_up_no_other(
    client: CairnQ, make_rig: MakeRig, store: Any, events: Recorder, lose: Any
) -> None:
    registry, gate = Registry(), Gate()
    registry.register("x", gate)
    await make_long(store, client)
    beside = await client.submit("x", "beside it")
    lose(store, "settle_many")
    async with make_rig(registry, concurrency=2):
        assert (await gate.entered()).task_id == beside.id
        gate.open()
        assert (await client.wait(beside.id)).result == "beside it"
        assert (await client.wait(LONG_ID)).error["code"] == "invalid_id"
    assert len(events.all("database.failed")) == len(events.all("database.recovered")) == 1


async def test_one_that_was_recovered_before_it_could_be_refused_is_refused_in_its_turn(
    client: CairnQ, make_rig: MakeRig, store: Any
) -> None:
    registry, gate = Registry(), Gate()
    registry.register("x", gate)
    await make_long(store, client)
    settle_many = store.settle_many

    async def recovered_first(*arguments: Any) -> Any:
        store.settle_many = settle_many
        await let_lapse(store, LONG_ID)
        await store.recover()
        return await settle_many(*arguments)

    store.settle_many = recovered_first
    async with make_rig(registry):
        ended = await soon(client.wait(LONG_ID))
    assert (ended.error["code"], ended.attempt) == ("invalid_id", 2)
