"""Runs under the interpreter of PyPI's cairnq, never under ours: makes its tables, works, submits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import common

from cairnq import CairnQ, Worker


async def main(spec: dict[str, Any]) -> None:
    match spec["do"]:
        case "setup":
            async with CairnQ.postgres(spec["dsn"]) as client:
                await client.get("task_none")
        case "work":
            await work(spec)
        case "submit":
            async with CairnQ.postgres(spec["dsn"], max_size=1) as client:
                await common.submit(spec, lambda payload: client.submit("work", payload), _no_bulk)


async def _no_bulk(_payloads: Any) -> None:
    raise NotImplementedError("it has no call that submits several tasks")


async def work(spec: dict[str, Any]) -> None:
    lease_ms = spec.get("lease_ms", 30_000)
    worker = Worker.postgres(spec["dsn"], concurrency=spec["concurrency"], max_size=spec["pool"], lease_ms=lease_ms)
    body = common.handler(spec)

    async def run(_context: Any, payload: Any) -> None:
        await body(payload)

    async def run_batch(contexts: Any) -> None:
        for context in contexts:
            await body(context.payload)

    worker.register("work", run_batch if spec["batch"] else run, batch=spec["batch"])
    async with worker.background():
        await common.work_until_stdin_closes()


if __name__ == "__main__":
    common.run(main(common.given()))
