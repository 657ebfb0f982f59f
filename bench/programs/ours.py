"""Our side of the measurements: the application that `cairnq run` loads, a standalone worker, and a client."""

from __future__ import annotations

import cProfile
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bench.programs import common
from cairnq import CairnQ, Registry, TaskContext, Worker


def registered(spec: dict[str, Any]) -> Registry:
    registry = Registry()
    body = common.handler(spec)

    async def run(_context: TaskContext, payload: dict[str, Any]) -> None:
        await body(payload)

    async def run_batch(contexts: list[TaskContext]) -> None:
        for context in contexts:
            await body(context.payload)

    batch = spec.get("batch")
    registry.register("work", run_batch if batch else run, batch=batch, forget=spec.get("forget", False))
    return registry


@contextmanager
def _profiled(file: str | None) -> Iterator[Callable[[], None]]:
    """What is to be called at the end: it writes the profile, if one was asked for."""
    if file is None:
        yield lambda: None
        return
    profiler = cProfile.Profile()
    profiler.enable()
    yield lambda: profiler.dump_stats(file)


async def main(spec: dict[str, Any]) -> None:
    match spec["do"]:
        case "setup":
            async with CairnQ.at(spec["dsn"]) as client:
                await client.get("task_none")
        case "work":
            registry = registered(spec)
            worker = Worker.postgres(spec["dsn"], registry=registry, concurrency=spec["concurrency"])
            async with worker.background():
                with _profiled(spec.get("profile")) as at_end:
                    await common.work_until_stdin_closes(at_end=at_end)
        case "submit":
            one_connection: dict[str, Any] = {} if spec["dsn"].startswith("sqlite:") else {"max_size": 1}
            async with CairnQ.at(spec["dsn"], **one_connection) as client:
                await common.submit(
                    spec,
                    lambda payload: client.submit("work", payload),
                    lambda payloads: client.submit_many([{"name": "work", "payload": payload} for payload in payloads]),
                )


if __name__ == "__main__":
    common.run(main(common.given()))
elif "BENCH_SPEC" in os.environ:
    app = registered(common.given())
    """What the configuration of the supervised run names."""
