"""Holds a submit back while its queue is at the depth that the caller allows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from cairnq.pure import arguments
from cairnq.pure.errors import QueueFull
from cairnq.store.base import TaskStore

QueueDepthLimit = int | Mapping[str, int]

DEFAULT_WAIT_MS = 600_000
DEFAULT_POLL_MS = 250


class Backpressure:
    """`limit`: tasks queued, for every queue or by queue; a queue without a limit is never held back.

    The look and the insert are two statements, so submitters that look together may pass the limit by their number.
    """

    def __init__(
        self,
        store: TaskStore,
        limit: QueueDepthLimit | None,
        *,
        max_wait_ms: int = DEFAULT_WAIT_MS,
        poll_interval_ms: int = DEFAULT_POLL_MS,
    ) -> None:
        self._store = store
        self._limit = _checked(limit)
        self._max_wait_ms = arguments.integer(max_wait_ms, "max_queue_wait_ms", least=0, most=2**53)
        self._poll_s = arguments.integer(poll_interval_ms, "queue_poll_interval_ms", least=1, most=2**31) / 1000

    @property
    def is_off(self) -> bool:
        return self._limit is None

    async def admit(self, queue: str, *, may_wait: bool = True) -> None:
        """Returns when the queue has room. Raises `QueueFull` after `max_wait_ms` (at once unless `may_wait`)."""
        limit = self._limit.get(queue) if isinstance(self._limit, Mapping) else self._limit
        if limit is None:
            return
        started = time.monotonic()
        deadline = started + (self._max_wait_ms / 1000 if may_wait else 0)
        while await self._store.queue_depth(queue, limit) == 0:
            now = time.monotonic()
            if now >= deadline:
                raise QueueFull(queue, limit, waited_ms=round((now - started) * 1000))
            await asyncio.sleep(min(self._poll_s, deadline - now))


def _checked(limit: QueueDepthLimit | None) -> QueueDepthLimit | None:
    if limit is None:
        return None
    if isinstance(limit, Mapping):
        return {
            arguments.text(queue, "a queue of max_queue_depth"): arguments.integer(
                depth, f"max_queue_depth of queue {queue!r}", least=1, most=2**53
            )
            for queue, depth in limit.items()
        }
    return arguments.integer(limit, "max_queue_depth", least=1, most=2**53)
