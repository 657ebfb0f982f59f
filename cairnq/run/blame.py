"""Finds out, from another thread, which handler blocks an event loop, and shows its stack."""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

from cairnq.pure.clock import Clock
from cairnq.pure.errors import EventLoopBlocked
from cairnq.run.emit import Emit
from cairnq.run.leases import LeaseTable


class LoopWitness:
    """Watches one loop by the pulse in its lease table. One report a block, however long it lasts."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        handler_in: Callable[[asyncio.Task[Any]], str | None],
        *,
        interval_s: float,
        lease_s: float,
        clock: Clock,
        emit: Emit,
    ) -> None:
        """Made on the thread that runs `loop`. `interval_s`: how often `look` is called, on another thread.

        `handler_in(task)`: the name of the handler that an asyncio task of the loop is a call of; asked on that thread.
        """
        self._loop = loop
        self._thread_id = threading.get_ident()
        self._handler_in = handler_in
        self._interval_s = interval_s
        self._lease_s = lease_s
        self._clock = clock
        self._emit = emit
        self._reported: float | None = None

    def look(self, table: LeaseTable) -> None:
        """A loop that has not turned for half an interval is blocked."""
        last = table.last_progress
        late_s = self._clock() - last
        if last in (0.0, self._reported) or late_s < self._interval_s / 2:
            return
        frame = sys._current_frames().get(self._thread_id)  # noqa: SLF001 - the documented way to another thread's stack
        if frame is None:
            return
        self._reported = last
        task = asyncio.current_task(self._loop)
        self._emit(
            "loop.blocked",
            error=EventLoopBlocked(round(late_s * 1000), round(self._interval_s * 1000), round(self._lease_s * 1000)),
            handler=None if task is None else self._handler_in(task),
            stack="".join(traceback.format_stack(frame)),
        )
