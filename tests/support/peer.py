"""Runs under the other SDK's Python, never under ours: its client and worker, driven by lines of JSON.

A line in: `{"number": n, "do": "submit", ...arguments}`. A line out: `{"number": n, "value": ...}`, `{"number": n,
"error": class, "text": ...}`, or `{"event": ..., "task_id": ...}` from a handler. It ends when its stdin does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

from cairnq import CairnQ, Worker

FIELDS = (
    *("id", "name", "queue", "status", "payload", "result", "error", "metadata", "progress", "message", "attempt"),
    *("max_attempts", "priority", "worker_id", "parent_id", "root_id", "correlation_id"),
)
CANCEL_LOOK_S = 0.02


def plain(value: Any) -> Any:
    """Tasks as their fields; what JSON knows as it is."""
    if hasattr(value, "max_attempts"):
        return {field: getattr(value, field) for field in FIELDS}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


class Handlers:
    """What the worker can be told to run a name with."""

    def __init__(self) -> None:
        self.gates: dict[str, asyncio.Event] = {}

    async def echo(self, ctx: Any, payload: Any) -> Any:
        """Its payload is its result."""
        return payload

    async def signed(self, ctx: Any, payload: Any) -> Any:
        """Says who ran it."""
        return {"by": "peer", "attempt": ctx.attempt}

    async def gated(self, ctx: Any, payload: Any) -> Any:
        """Says that it runs, and ends when `open` is called for it."""
        gate = self.gates.setdefault(ctx.task_id, asyncio.Event())
        say({"event": "started", "task_id": ctx.task_id, "attempt": ctx.attempt})
        await gate.wait()
        return payload

    async def until_canceled(self, ctx: Any, payload: Any) -> Any:
        """Says that it runs, and leaves once a cancel was asked."""
        say({"event": "started", "task_id": ctx.task_id, "attempt": ctx.attempt})
        while not await ctx.canceled():  # noqa: ASYNC110 - no event tells of a cancel in the shared API
            await asyncio.sleep(CANCEL_LOOK_S)  # sleep: between two looks for a cancel
        say({"event": "canceled", "task_id": ctx.task_id})
        return "left"


def _kind(maker: Any, dsn: str) -> Any:
    """How that class is made for an address: the URL of a server, or the path of a file."""
    return maker.postgres if "://" in dsn else maker.sqlite


class Program:
    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._client: Any = None
        self._handlers = Handlers()
        self._background = contextlib.AsyncExitStack()

    async def run(self) -> None:
        tasks: set[asyncio.Task[None]] = set()
        async with self._background:
            async for line in lines():
                task = asyncio.create_task(self._answer(json.loads(line)))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            for gate in self._handlers.gates.values():
                gate.set()
            await asyncio.gather(*tasks)

    async def _answer(self, message: dict[str, Any]) -> None:
        number, do = message.pop("number"), message.pop("do")
        try:
            own: Callable[..., Any] | None = getattr(self, f"do_{do}", None)
            value = await (own(**message) if own is not None else getattr(self._client, do)(**message))
        except Exception as error:  # noqa: BLE001 - whatever it raised is the answer
            say({"number": number, "error": type(error).__name__, "text": str(error)})
        else:
            say({"number": number, "value": plain(value)})

    async def do_connect(self) -> None:
        self._client = await self._background.enter_async_context(_kind(CairnQ, self._dsn)(self._dsn))

    async def do_work(self, handlers: dict[str, str], queues: list[str], **options: Any) -> str:
        """Starts the worker: `handlers` maps a task's name to one of `Handlers`."""
        worker: Any = _kind(Worker, self._dsn)(self._dsn, queues=queues, **options)
        for name, handler in handlers.items():
            worker.register(name, getattr(self._handlers, handler))
        await self._background.enter_async_context(worker.background())
        return str(worker.worker_id)

    async def do_open(self, task_id: str) -> None:
        self._handlers.gates.setdefault(task_id, asyncio.Event()).set()

    async def do_get(self, task_id: str) -> Any:
        return await self._client.get(task_id)

    async def do_wait(self, task_id: str, timeout_ms: int = 30_000) -> Any:
        """The task as it is when it is terminal, whichever way it ended."""
        with contextlib.suppress(Exception):  # failed and canceled are raised; the row says it too
            await self._client.wait(task_id, timeout_ms=timeout_ms)
        return await self._client.get(task_id)

    async def do_cancel(self, task_id: str) -> Any:
        return await self._client.cancel(task_id)

    async def do_retry(self, task_id: str) -> Any:
        return await self._client.retry(task_id)


async def lines() -> AsyncIterator[bytes]:
    reader = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async for line in reader:
        yield line


if __name__ == "__main__":
    asyncio.run(Program(sys.argv[1]).run())
