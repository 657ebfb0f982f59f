"""Runs under the interpreter of procrastinate: makes its tables, works, submits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import common
from procrastinate import App, PsycopgConnector


async def main(spec: dict[str, Any]) -> None:
    app = App(connector=PsycopgConnector(conninfo=spec["dsn"], min_size=1, max_size=spec.get("pool", 1)))
    body = None if spec["do"] != "work" else common.handler(spec)

    @app.task(name="work", pass_context=False)
    async def work(**payload: Any) -> None:
        assert body is not None
        await body(payload)

    async with app.open_async():
        match spec["do"]:
            case "setup":
                await app.schema_manager.apply_schema_async()
            case "work":
                working = app.run_worker_async(concurrency=spec["concurrency"], install_signal_handlers=False)
                await common.work_until_stdin_closes(working)
            case "submit":
                await common.submit(
                    spec,
                    lambda payload: work.defer_async(**payload),
                    lambda payloads: work.batch_defer_async(*payloads),
                )


if __name__ == "__main__":
    common.run(main(common.given()))
