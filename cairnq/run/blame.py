"""Finds out, from another thread, which handler blocks an event loop, and shows its stack."""

from __future__ import annotations

import functools
import inspect
import sys
import traceback
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

from cairnq.pure.clock import Clock
from cairnq.pure.errors import EventLoopBlocked
from cairnq.run.emit import Emit
from cairnq.run.leases import LeaseTable
from cairnq.run.registry import Registry


class LoopWitness:
    """Watches the loop of one thread by the pulse in its lease table. One report a block, however long it lasts."""

    def __init__(
        self, thread_id: int, registry: Registry, *, interval_s: float, lease_s: float, clock: Clock, emit: Emit
    ) -> None:
        """`thread_id`: of the thread that runs the loop. `interval_s`: how often `look` is called."""
        self._thread_id = thread_id
        self._registry = registry
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
        self._emit(
            "loop.blocked",
            error=EventLoopBlocked(round(late_s * 1000), round(self._interval_s * 1000), round(self._lease_s * 1000)),
            handler=self._guilty(frame),
            stack="".join(traceback.format_stack(frame)),
        )

    def _guilty(self, frame: FrameType) -> str | None:
        """The name of the outermost handler on the stack."""
        names = {code: handler.name for handler in self._registry.handlers.values() for code in _codes(handler.fn)}
        for inner, _ in reversed(list(traceback.walk_stack(frame))):
            if inner.f_code in names:
                return names[inner.f_code]
        return None


def _codes(fn: Any) -> Iterator[CodeType]:
    """The code objects behind a handler: of a function, a method, a partial, a callable object, a decorated one."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    for candidate in (fn, inspect.unwrap(fn), getattr(type(fn), "__call__", None)):  # noqa: B004
        code = getattr(candidate, "__code__", None)
        if code is not None:
            yield code
