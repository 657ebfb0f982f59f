"""Tells a callback when something may have changed: by notification where it works, by a tick in any case."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from cairnq.pure import arguments
from cairnq.pure.models import WatchSignal
from cairnq.store.base import TaskStore
from cairnq.store.wait import DONE_CHANNEL

QUEUED_CHANNEL = "cairnq_queued"


class Watch:
    """`on_signal` runs on the event loop and must not block; what it raises goes to the loop's exception handler."""

    def __init__(
        self,
        store: TaskStore,
        on_signal: Callable[[WatchSignal], None],
        queues: Sequence[str] | None,
        poll_ms: int,
    ) -> None:
        self._store = store
        self._on_signal = on_signal
        self._queues = None if queues is None else frozenset(arguments.names(queues, "queues"))
        self._poll_s = arguments.integer(poll_ms, "poll_ms", least=1, most=2**31) / 1000
        self._unlisten: Callable[[], Awaitable[None]] | None = None
        self._ticking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._ticking = asyncio.create_task(self._tick(), name="cairnq watch")
        try:
            self._unlisten = await self._store.listen([QUEUED_CHANNEL, DONE_CHANNEL], self._on_notify, self._on_state)
        except BaseException:  # nobody else could stop the ticks
            await self.stop()
            raise

    async def stop(self) -> None:
        ticking, self._ticking = self._ticking, None
        unlisten, self._unlisten = self._unlisten, None
        if ticking is not None:
            ticking.cancel()
            await asyncio.wait({ticking})
        if unlisten is not None:
            await unlisten()

    def _on_notify(self, channel: str, payload: str) -> None:
        if not payload:  # something changed, and nobody said what
            self._signal(WatchSignal("poll"))
        elif channel == DONE_CHANNEL:
            self._signal(WatchSignal("done", task_id=payload))
        elif self._queues is None or payload in self._queues:
            self._signal(WatchSignal("queued", queue=payload))

    def _on_state(self, delivers: bool) -> None:
        """What changed before notifications (again) arrived was not notified."""
        if delivers:
            self._signal(WatchSignal("poll"))

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self._poll_s)
            self._signal(WatchSignal("poll"))

    def _signal(self, signal: WatchSignal) -> None:
        """From the loop itself, so that a callback that raises ends neither the ticks nor the subscription."""
        asyncio.get_running_loop().call_soon(self._tell, signal)

    def _tell(self, signal: WatchSignal) -> None:
        if self._ticking is not None:
            self._on_signal(signal)
