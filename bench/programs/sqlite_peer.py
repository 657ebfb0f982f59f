"""A worker of the other SDK: `its-python -I sqlite_peer.py DSN CONCURRENCY [BATCH]`, until its stdin closes."""

from __future__ import annotations

import asyncio
import sys

from cairnq import Worker


async def main(dsn: str, concurrency: int, batch: int | None) -> None:
    worker = (Worker.postgres if "://" in dsn else Worker.sqlite)(dsn, concurrency=concurrency)

    async def noop(_context: object, _payload: object) -> None:
        return None

    async def noop_batch(_contexts: object) -> None:
        return None

    worker.register("noop", noop_batch if batch else noop, batch=batch)

    async with worker.background():
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if sys.argv[3:] and sys.argv[3] else None))
