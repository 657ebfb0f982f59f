"""Runs under the interpreter of pgqueuer: makes its tables, works, submits."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import asyncpg
import common
from pgqueuer import Job, PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries


async def main(spec: dict[str, Any]) -> None:
    connection = await asyncpg.connect(spec["dsn"])
    queries = Queries(AsyncpgDriver(connection))
    match spec["do"]:
        case "setup":
            await queries.install()
        case "work":
            await work(spec, connection)
        case "submit":
            await common.submit(
                spec,
                lambda payload: queries.enqueue("work", json.dumps(payload).encode()),
                lambda payloads: queries.enqueue(
                    ["work"] * len(payloads),
                    [json.dumps(payload).encode() for payload in payloads],
                    [0] * len(payloads),
                ),
            )


async def work(spec: dict[str, Any], connection: asyncpg.Connection) -> None:
    queuer = PgQueuer(AsyncpgDriver(connection))
    body = common.handler(spec)

    @queuer.entrypoint("work")
    async def run(job: Job) -> None:
        await body(job.payload)

    working = queuer.run(
        batch_size=spec["batch"],
        max_concurrent_tasks=spec.get("concurrency"),
        heartbeat_timeout=timedelta(seconds=spec.get("heartbeat_s", 30)),
    )
    await common.work_until_stdin_closes(working)


if __name__ == "__main__":
    common.run(main(common.given()))
