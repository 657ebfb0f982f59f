"""When the keeper counts what waits, and when it need not."""

from __future__ import annotations

import asyncio
from typing import Any

from cairnq.pure.models import QueueBacklog
from cairnq_supervisor.pure.keeper_messages import Sampled
from cairnq_supervisor.pure.messages import Message
from cairnq_supervisor.roles.sampling import Sampling

PATIENCE = 60.0


class Keeper:
    """Its connection, which finds `found`, and its link."""

    def __init__(self) -> None:
        self.found: dict[str, QueueBacklog] = {}
        self.asked = 0
        self.said: asyncio.Queue[Message] = asyncio.Queue()

    async def ask(self, operation: str, work: object, *, patience: float) -> dict[str, QueueBacklog]:
        self.asked += 1
        return self.found

    def send(self, message: Message) -> None:
        self.said.put_nowait(message)


async def test_what_a_death_left_is_counted_though_the_last_look_saw_nothing() -> None:
    """A look of half a second ago knows nothing of a task that was claimed, and whose process died, since."""
    keeper = Keeper()
    parts: list[Any] = [keeper, keeper, ["default"]]
    sampling = Sampling(*parts, patience=PATIENCE, is_idle=lambda: True)
    turns = asyncio.ensure_future(sampling.run())
    for _ in range(3):
        await asyncio.sleep(0)
    assert keeper.asked == 0, "an idle host counts nothing"
    keeper.found = {"default": QueueBacklog(due=1, running=0, oldest_ms=5, suspects=1)}
    sampling.look_soon()
    async with asyncio.timeout(PATIENCE):
        assert await keeper.said.get() == Sampled({"default": [1, 0, 5, 1]})
    assert keeper.asked == 1
    turns.cancel()
