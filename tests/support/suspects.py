"""Tasks that were in flight when their process died, without a death."""

from __future__ import annotations

from typing import Any

from cairnq.pure.envelope import worker_crashed
from cairnq.pure.ids import new_worker_id
from cairnq.pure.models import Settlement
from cairnq.store.base import TaskStore

CRASH = worker_crashed("worker default/0 died: SIGKILL", {"exit_code": None, "signal": 9})


async def suspect(store: TaskStore, name: str, payload: Any = None, *, deaths: int = 2, **submit: Any) -> str:
    """The id of a queued task that was in flight at so many deaths. For a moment others of its name are leased too."""
    task = await store.submit(name, payload, **submit)
    dead = new_worker_id()
    for _ in range(deaths):
        claimed = await store.claim([task.queue], dead, limit=100, names=[name])
        assert task.id in {one.id for one in claimed}
        settlements = [
            Settlement.crash(one.id, one.attempt, CRASH, alone=False, delay_ms=0)
            if one.id == task.id
            else Settlement.release(one.id, one.attempt, started=False)
            for one in claimed
        ]
        assert None not in await store.settle_many(dead, settlements)
    return task.id
