"""A standalone worker by itself: `python -m bench.worker_process DSN CONCURRENCY`, until its stdin closes.

It prints `ready`, and for each task whose payload says when it was submitted, how long its handler took to start (us).
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from cairnq import TaskContext, Worker


async def main(dsn: str, concurrency: int) -> None:
    worker = Worker.postgres(dsn, concurrency=concurrency)

    async def noop(_context: TaskContext, payload: dict[str, Any]) -> None:
        if "at_ns" in payload:
            print(f"{(time.monotonic_ns() - payload['at_ns']) / 1000:.0f}", flush=True)

    worker.register("noop", noop)
    async with worker.background():
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
