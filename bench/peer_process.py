"""A worker of the other SDK: `its-python -I peer_process.py DSN CONCURRENCY`, until its stdin closes."""

from __future__ import annotations

import asyncio
import sys

from cairnq import Worker


async def main(dsn: str, concurrency: int) -> None:
    worker = Worker.postgres(dsn, concurrency=concurrency)

    async def noop(_context: object, _payload: object) -> None:
        return None

    worker.register("noop", noop)

    async with worker.background():
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
