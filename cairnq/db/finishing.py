"""Work that goes on to its end though whoever awaits it is cancelled, as the giving back of a connection must."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Coroutine, Generator
from typing import Any


class Finishing:
    """Of one event loop."""

    def __init__(self) -> None:
        self._going: set[asyncio.Task[None]] = set()
        """An event loop alone would not hold them."""

    async def run_short(self, work: Coroutine[Any, Any, None]) -> None:
        """As `run`, of work that seldom waits, and for locks alone: a task is made only where it does.

        Two turns of the loop are a sixth of what a short statement costs. (Time-outs would take it for its caller.)
        """
        try:
            awaited = work.send(None)
        except StopIteration:
            return
        await self.run(_rest(work, awaited))

    async def run(self, work: Coroutine[Any, Any, None]) -> None:
        """As `await work`; a cancellation ends the wait, and not the work."""
        task = asyncio.create_task(work)
        self._going.add(task)
        task.add_done_callback(self._going.discard)
        await asyncio.shield(task)

    async def settle(self, patience: float) -> None:
        """Wait for what nobody awaits any more, `patience` seconds at most."""
        going = self._going - {asyncio.current_task()}
        if going:
            await asyncio.wait(going, timeout=patience)


async def _rest(work: Coroutine[Any, Any, None], awaited: Any) -> None:
    """What is left of work that has begun, and waits."""
    await _resumed(work, awaited)


@types.coroutine
def _resumed(work: Coroutine[Any, Any, None], awaited: Any) -> Generator[Any, Any, None]:
    yield awaited
    yield from work
