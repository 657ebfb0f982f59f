"""A standalone worker by itself: `python -m bench.worker_process DSN CONCURRENCY [BATCH]`, until its stdin closes.

It prints `ready`, and for each task whose payload says when it was submitted, how long its handler took to start (us).
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from cairnq import TaskContext
from tests.support.routes import Route


async def main(dsn: str, concurrency: int, batch: int | None) -> None:
    worker = Route(dsn).worker(concurrency=concurrency)

    async def noop(_context: TaskContext, payload: dict[str, Any]) -> None:
        if "at_ns" in payload:
            print(f"{(time.monotonic_ns() - payload['at_ns']) / 1000:.0f}", flush=True)

    async def noop_batch(_contexts: list[TaskContext]) -> None:
        return None

    worker.register("noop", noop_batch if batch else noop, batch=batch)
    async with worker.background():
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if sys.argv[3:] and sys.argv[3] else None))
