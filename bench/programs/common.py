"""What every measured Python program shares: what its handlers do, what it writes down, how it submits.

It imports nothing but the standard library (and uvloop where there is one): it runs under each peer's interpreter too.
A program takes one JSON argument or `BENCH_SPEC`; it prints `ready`, and as a client one line of JSON with its result.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

CPU_S = 0.001
SLEEP_S = 0.005

Body = Callable[[Any], Awaitable[None]]


class Notes:
    """A file for each worker process: the moment of each `every`-th call, or how long each call took to come."""

    def __init__(self, folder: str, every: int) -> None:
        self._folder, self._every = Path(folder), every
        self._calls, self._pid, self._descriptor = 0, 0, -1

    def call(self) -> None:
        self._calls += 1
        if self._calls % self._every == 0:
            self.write(time.monotonic_ns())

    def write(self, number: int) -> None:
        if self._pid != os.getpid():  # a forked worker must not share its parent's file
            self._pid = os.getpid()
            self._descriptor = os.open(self._folder / str(self._pid), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(self._descriptor, b"%d\n" % number)


def handler(spec: dict[str, Any]) -> Body:
    """The coroutine function that a program's own handler awaits with the task's payload (a dictionary, or bytes)."""
    notes = Notes(spec["notes"], spec.get("every", 1))

    async def noop(_payload: Any) -> None:
        notes.call()

    async def sleep(_payload: Any) -> None:
        notes.call()
        await asyncio.sleep(SLEEP_S)

    async def cpu(_payload: Any) -> None:
        notes.call()
        end = time.thread_time() + CPU_S
        while time.thread_time() < end:
            pass

    async def read(payload: Any) -> None:
        notes.call()
        plain(payload)["text"]

    async def pick_up(payload: Any) -> None:
        now = time.monotonic_ns()
        notes.write((now - plain(payload)["at_ns"]) // 1000)

    async def hold(_payload: Any) -> None:
        notes.call()
        await asyncio.Event().wait()

    bodies: dict[str, Body] = {
        "noop": noop,
        "sleep": sleep,
        "cpu": cpu,
        "read": read,
        "pick_up": pick_up,
        "hold": hold,
    }
    return bodies[spec["handler"]]


def plain(payload: Any) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(payload) if isinstance(payload, (bytes, str)) else payload
    return value


async def work_until_stdin_closes(
    working: Coroutine[Any, Any, Any] | None = None, at_end: Callable[[], None] = lambda: None
) -> None:
    """Says that it is ready; ends, too, with what `working` raises."""
    tasks = {asyncio.ensure_future(asyncio.to_thread(sys.stdin.read))}
    if working is not None:
        tasks.add(asyncio.ensure_future(working))
    print("ready", flush=True)
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    at_end()
    os._exit(0)  # stdin's thread would keep it, and there is nothing to say goodbye to


async def submit(
    spec: dict[str, Any],
    one: Callable[[dict[str, Any]], Awaitable[Any]],
    many: Callable[[Sequence[dict[str, Any]]], Awaitable[Any]],
) -> None:
    """`count` tasks of about `bytes` each, `bulk` a call (0: one by one), for at most `seconds`; after a line on stdin.

    `every_ms`: one each so often, give or take a quarter, from the monotonic `start_ns` on; 0: as fast as they go.
    """
    text = "x" * max(0, spec["bytes"] - 12)
    await one({"text": text, "at_ns": time.monotonic_ns()})  # connected, and prepared
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    took: list[int] = []
    start, cpu = time.monotonic_ns(), time.process_time()
    end = start + round(spec["seconds"] * 1e9)
    done = 0
    while done < spec["count"] and time.monotonic_ns() < end:
        if spec["every_ms"]:
            await _until(spec.get("start_ns", start) + round((done + random.uniform(0, 0.25)) * spec["every_ms"] * 1e6))
        before = time.monotonic_ns()
        if spec["bulk"]:
            size = min(spec["bulk"], spec["count"] - done)
            await many([{"text": text}] * size)
        else:
            size = 1
            await one({"text": text, "at_ns": before})
        took.append(time.monotonic_ns() - before)
        done += size
    seconds, cpu = (time.monotonic_ns() - start) / 1e9, time.process_time() - cpu
    took.sort()
    said = {"count": done, "seconds": seconds, "p50_us": took[len(took) // 2] / 1000, "cpu_us": cpu / done * 1e6}
    print(json.dumps(said), flush=True)


async def _until(moment_ns: int) -> None:
    ahead = moment_ns - time.monotonic_ns()
    if ahead > 0:
        await asyncio.sleep(ahead / 1e9)


def given() -> dict[str, Any]:
    """What the harness asks of this program."""
    spec: dict[str, Any] = json.loads(os.environ.get("BENCH_SPEC") or sys.argv[1])
    return spec


def run(main: Coroutine[Any, Any, None]) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main)
