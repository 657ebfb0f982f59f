"""The application under torture: handlers good and bad, each of which notes its calls in the black box."""

from __future__ import annotations

import asyncio
import os
import select
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cairnq
from cairnq.pure.clock import boottime
from cairnq_supervisor.torture.blackbox import BlackBox, Call
from cairnq_supervisor.torture.configuration import EFFECTS_VARIABLE, FOLDER_VARIABLE
from cairnq_supervisor.torture.workload import MANY_ATTEMPTS

_TICK_S = 0.05

registry = cairnq.Registry()
_box = BlackBox(Path(os.environ[FOLDER_VARIABLE]))
_INSERT = f"insert into {os.environ[EFFECTS_VARIABLE]} (task_id, run_id) values ($1, $2)"  # noqa: S608 - ours, quoted

Payload = dict[str, Any]
Result = dict[str, str]


@registry.task
async def quick(ctx: cairnq.TaskContext, payload: Payload) -> Result:
    with _box.call(ctx) as call:
        await _work(ctx, call, payload)
    return {"run": call.run_id}


@registry.task
def plain(ctx: Any, payload: Payload) -> Result:
    with _box.call(ctx) as call:
        _block(call, payload)
    return {"run": call.run_id}


@registry.task(batch=8)
async def batched(contexts: Sequence[cairnq.TaskContext]) -> dict[str, Result]:
    calls = [_box.call(ctx) for ctx in contexts]
    for call in calls:
        call.__enter__()
    await asyncio.sleep(max(ctx.payload["work_ms"] for ctx in contexts) / 1000)
    for call in calls:
        call.__exit__(None, None, None)
    return {ctx.task_id: {"run": call.run_id} for ctx, call in zip(contexts, calls, strict=True)}


@registry.task
async def slow(ctx: cairnq.TaskContext, payload: Payload) -> Result:
    """Longer than a lease, now and then; says how far it is."""
    with _box.call(ctx) as call:
        await ctx.progress(0.1, "begun")
        await _work(ctx, call, payload)
    return {"run": call.run_id}


@registry.task
async def transact(ctx: cairnq.TaskContext, payload: Payload) -> None:
    """A row of its own in the transaction that settles it."""
    with _box.call(ctx) as call:
        await _work(ctx, call, payload)

    async def write(session: Any) -> Result:
        await session.query(_INSERT, [ctx.task_id, call.run_id])
        return {"run": call.run_id}

    await ctx.succeed_in(write)


@registry.task(forget=True)
async def forgotten(ctx: cairnq.TaskContext, payload: Payload) -> Result:
    with _box.call(ctx) as call:
        await _work(ctx, call, payload)
    return {"run": call.run_id}


@registry.task
async def chain(ctx: cairnq.TaskContext, payload: Payload) -> Result:
    """Submits one more, under a key, so that a second attempt finds what the first one made."""
    key = f"{ctx.task_id}:next"
    with _box.call(ctx) as call:
        await _work(ctx, call, payload)
        await ctx.submit(
            "quick",
            {"work_ms": 1},
            queue="fast",
            key=key,
            conflict="reuse-succeeded",
            metadata={"key": key, "conflict": "reuse-succeeded"},
            max_attempts=MANY_ATTEMPTS,
        )
    return {"run": call.run_id}


@registry.task(concurrency=1)
async def blocking(ctx: cairnq.TaskContext, payload: Payload) -> Result:
    """Holds the event loop, as an async handler must not."""
    with _box.call(ctx) as call:
        _block(call, payload)
    return {"run": call.run_id}


@registry.task
async def failing(ctx: cairnq.TaskContext, payload: Payload) -> Result:
    with _box.call(ctx) as call:
        if payload["permanent"]:
            raise cairnq.TaskError("it never works")
        if ctx.attempt <= payload["failures"]:
            raise ConnectionResetError("the far end hung up")
    return {"run": call.run_id}


@registry.task
async def crashing(ctx: cairnq.TaskContext, payload: Payload) -> Result:
    """Takes its whole process with it, as the out-of-memory killer would."""
    with _box.call(ctx) as call:
        if ctx.attempt <= payload["deaths"]:
            os.kill(os.getpid(), signal.SIGKILL)
    return {"run": call.run_id}


@registry.task
async def hanging(ctx: cairnq.TaskContext, payload: Payload) -> Result:
    """Never comes back by itself; a deaf one does not hear that it is cancelled either."""
    with _box.call(ctx) as call:
        while True:
            try:
                await asyncio.sleep(_TICK_S)
            except asyncio.CancelledError:
                if not payload["deaf"]:
                    raise
            call.mark()


async def _work(ctx: cairnq.TaskContext, call: Call, payload: Payload) -> None:
    """As long as was asked, or until it is cancelled."""
    end = boottime() + payload["work_ms"] / 1000
    while (left := end - boottime()) > 0 and not await ctx.canceled():
        await asyncio.sleep(min(left, _TICK_S))
        call.mark()


def _block(call: Call, payload: Payload) -> None:
    end = boottime() + payload["work_ms"] / 1000
    while (left := end - boottime()) > 0:
        select.select([], [], [], min(left, _TICK_S))  # time.sleep fails at times where libfaketime is loaded
        call.mark()
