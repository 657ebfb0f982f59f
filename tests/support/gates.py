"""Handlers that a test opens, and the worker's events as something to wait for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

PATIENCE_S = 60.0
"""For what must happen anyway; only a failing test waits this long."""


class _Entrance:
    """Who came in, in their order."""

    def __init__(self) -> None:
        self._entered: asyncio.Queue[Any] = asyncio.Queue()

    async def entered(self) -> Any:
        """The context of the next call that entered."""
        return await soon(self._entered.get())

    @property
    def none_entered(self) -> bool:
        """Nobody entered whom `entered` has not told of."""
        return self._entered.empty()


class Gate(_Entrance):
    """A coroutine handler that says who entered, and returns its payload once it was opened."""

    def __init__(self) -> None:
        super().__init__()
        self._opened = asyncio.Event()
        self.inside = 0
        self.most_inside = 0
        self.cancelled = 0

    async def __call__(self, ctx: Any, payload: Any) -> Any:
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        self._entered.put_nowait(ctx)
        try:
            await self._opened.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.inside -= 1
        return payload

    async def batch(self, contexts: list[Any]) -> dict[str, Any]:
        """The same as a batch handler; it enters with the list."""
        await self(contexts, None)
        return {ctx.task_id: ctx.payload for ctx in contexts}

    def open(self) -> None:
        self._opened.set()


class ThreadGate(_Entrance):
    """A plain handler, which blocks its thread until the gate was opened; no test leaves it closed."""

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._opened = threading.Event()
        self.returned = threading.Event()

    def __call__(self, ctx: Any, payload: Any) -> Any:
        self._loop.call_soon_threadsafe(self._entered.put_nowait, ctx)
        try:
            if not self._opened.wait(PATIENCE_S):
                raise TimeoutError("the test never opened the gate")
            return payload
        finally:
            self.returned.set()

    def open(self) -> None:
        self._opened.set()


class Recorder:
    """An `Emit` that keeps what it was told. To be made on the loop; told from any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self.events: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, event: str, /, **fields: Any) -> None:
        self.events.append((event, fields))
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._changed.set)

    def all(self, event: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.events if name == event]

    async def wait(self, event: str, count: int = 1) -> dict[str, Any]:
        """The fields of the `count`-th such event, past or to come."""
        await until(lambda: len(self.all(event)) >= count, self._changed)
        return self.all(event)[count - 1]


async def soon(awaitable: Any) -> Any:
    async with asyncio.timeout(PATIENCE_S):
        return await awaitable


async def until(condition: Callable[[], bool], changed: asyncio.Event) -> None:
    """Until `condition` holds; it is asked again whenever `changed` is set."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            changed.clear()
            await changed.wait()
