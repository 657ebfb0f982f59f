"""`serve()` in a process of its own, and the signals it gets."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cairnq import CairnQ, CairnQError
from tests.support.gates import soon
from tests.support.routes import Route
from tests.worker.conftest import MakeWorker

PROGRAM = """
import asyncio, logging, sys, threading
from tests.support.routes import Route

logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
worker = Route(sys.argv[1]).worker(concurrency=2)

@worker.task
async def patient(ctx, payload):
    print("entered", flush=True)
    await asyncio.sleep(payload)  # sleep: the handler of a program that signals hit
    return "finished"

@worker.task
def stuck(ctx):
    print("entered", flush=True)
    threading.Event().wait()

worker.serve(drain_timeout=float(sys.argv[2]))
print("served", flush=True)
"""


class Program:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def line(self, wanted: str) -> None:
        """Reads on until a line that starts so."""
        assert self.process.stdout is not None
        async with asyncio.timeout(60):
            while line := (await self.process.stdout.readline()).decode():
                if line.startswith(wanted):
                    return
        raise AssertionError(f"the program ended without saying {wanted!r}")

    async def ended(self) -> int:
        return int(await soon(self.process.wait()))


@asynccontextmanager
async def program(database: str, drain_timeout: float) -> AsyncIterator[Program]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, database, str(drain_timeout), stdout=asyncio.subprocess.PIPE
    )
    try:
        running = Program(process)
        await running.line("worker.started")
        yield running
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def row(client: CairnQ, task_id: str) -> Any:
    return await client.get(task_id)


async def test_term_drains_and_ends_with_nothing_left_running(client: CairnQ, database: str) -> None:
    async with program(database, 20) as served:
        task = await client.submit("patient", 0.5)
        await served.line("entered")
        served.process.send_signal(signal.SIGTERM)
        await served.line("served")
        assert await served.ended() == 0
    ended = await row(client, task.id)
    assert (ended.status, ended.result, ended.attempt) == ("succeeded", "finished", 1)


async def test_doubled_signals_are_one_drain(client: CairnQ, database: str) -> None:
    async with program(database, 20) as served:
        task = await client.submit("patient", 0.5)
        await served.line("entered")
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
            served.process.send_signal(number)
        assert await served.ended() == 0
    assert (await row(client, task.id)).result == "finished"


async def test_a_task_that_outlives_the_drain_is_claimable_when_the_process_has_ended(
    client: CairnQ, database: str
) -> None:
    async with program(database, 0.3) as served:
        task = await client.submit("patient", 3600)
        await served.line("entered")
        served.process.send_signal(signal.SIGTERM)
        assert await served.ended() == 0
    ended = await row(client, task.id)
    assert (ended.status, ended.attempt, ended.worker_id) == ("queued", 0, None)


@pytest.mark.slow
async def test_an_interrupt_after_a_second_means_now(client: CairnQ, database: str) -> None:
    async with program(database, 60) as served:
        task = await client.submit("patient", 3600)
        await served.line("entered")
        served.process.send_signal(signal.SIGINT)
        await asyncio.sleep(1.1)  # sleep: an earlier one counts as a repeat
        served.process.send_signal(signal.SIGINT)
        assert await served.ended() == 0
    assert (await row(client, task.id)).status == "queued"


async def test_a_stuck_thread_does_not_keep_the_process(client: CairnQ, database: str) -> None:
    async with program(database, 0.2) as served:
        task = await client.submit("stuck")
        await served.line("entered")
        served.process.send_signal(signal.SIGTERM)
        await served.line("task.left")
        assert await served.ended() == 0
    assert (await row(client, task.id)).status == "running", "left to the expiry of its lease"


async def test_serve_is_for_the_main_thread(database: str) -> None:
    worker = Route(database).worker()
    with pytest.raises(CairnQError, match="main thread"):
        await asyncio.to_thread(worker.serve)
    await worker.close()


async def test_a_served_worker_can_be_stopped_without_a_signal(make_worker: MakeWorker) -> None:
    worker = make_worker()
    worker.stop()
    await soon(worker.run())
