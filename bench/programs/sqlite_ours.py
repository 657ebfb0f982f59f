"""A worker of a file: `python -m bench.programs.sqlite_ours FILE CONCURRENCY [BATCH]`, until its stdin closes."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from cairnq import TaskContext, Worker


async def main(path: str, concurrency: int, batch: int | None) -> None:
    worker = Worker.sqlite(path, concurrency=concurrency)

    async def noop(_context: TaskContext, _payload: dict[str, Any]) -> None:
        return None

    async def noop_batch(_contexts: list[TaskContext]) -> None:
        return None

    worker.register("noop", noop_batch if batch else noop, batch=batch)
    async with worker.background():
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if sys.argv[3:] and sys.argv[3] else None))
