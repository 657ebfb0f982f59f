"""Work that goes on to its end though whoever awaits it is cancelled, as the giving back of a connection must."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class Finishing:
    """Of one event loop."""

    def __init__(self) -> None:
        self._going: set[asyncio.Task[None]] = set()
        """An event loop alone would not hold them."""

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
