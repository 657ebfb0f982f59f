"""A run that is cancelled drains at once; cancelled again it leaves, and nothing of it goes on behind its back."""

from __future__ import annotations

import asyncio
from typing import Any

from cairnq import CairnQ, TaskContext
from tests.support.gates import Gate, Recorder, soon
from tests.worker.conftest import MakeWorker


def still_running() -> list[str]:
    """Names of asyncio's tasks that are parts of a worker."""
    mine = [task.get_name() for task in asyncio.all_tasks()]
    return [name for name in mine if name.startswith("cairnq ") and "listener" not in name]


async def test_a_run_that_is_cancelled_gives_back_what_it_held(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, gate = make_worker(), Gate()
    worker.register("held", gate)
    task = await client.submit("held")
    running = asyncio.create_task(worker.run())
    await gate.entered()
    running.cancel()
    await soon(asyncio.wait({running}))
    assert running.cancelled()
    assert still_running() == []
    row = await client.get(task.id)
    assert row is not None
    assert (row.status, row.attempt) == ("queued", 0)


async def test_a_run_that_is_cancelled_twice_leaves_at_once(
    client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    worker, gate, deaf, left = make_worker(), Gate(), asyncio.Event(), asyncio.Event()

    @worker.task
    async def stubborn(ctx: TaskContext, payload: Any) -> None:
        try:
            await gate(ctx, payload)
        except asyncio.CancelledError:
            deaf.set()
            await gate(ctx, payload)
        finally:
            left.set()

    task = await client.submit("stubborn")
    running = asyncio.create_task(worker.run(drain_timeout=3600))
    await gate.entered()
    running.cancel()
    await soon(deaf.wait())
    running.cancel()
    await soon(asyncio.wait({running}))
    assert running.cancelled()
    assert still_running() == []
    assert (await client.get_status(task.id)).status == "running", "its lease says when another may have it"  # type: ignore[union-attr]
    gate.open()
    await soon(left.wait())
