"""What a worker that has nothing to do does first when a task comes: start it."""

from __future__ import annotations

from typing import Any

from cairnq import CairnQ, Registry, TaskContext
from tests.support.gates import soon
from tests.support.rigs import MakeRig


async def test_a_call_starts_before_the_worker_looks_for_more(client: CairnQ, store: Any, make_rig: MakeRig) -> None:
    registry, said = Registry(), []
    claim_many, settle_and_claim = store.claim_many, store.settle_and_claim

    def claim(*arguments: Any) -> Any:
        said.append("looks")
        return claim_many(*arguments)

    def exchange(*arguments: Any) -> Any:
        said.append("settles and looks")
        return settle_and_claim(*arguments)

    store.claim_many, store.settle_and_claim = claim, exchange

    @registry.task
    async def x(_ctx: TaskContext) -> None:
        said.append("starts")

    task = await client.submit("x")
    async with make_rig(registry, concurrency=2):
        await soon(client.wait(task.id))
    assert said[:2] == ["looks", "starts"]
    assert said[2] == ("settles and looks" if store.exchanges else "looks")
