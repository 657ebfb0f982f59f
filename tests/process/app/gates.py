"""The application under test. Its handlers tell a socket of the test that they started and do what it answers."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from typing import Any

import cairnq

registry = cairnq.Registry()


def _arrival(ctx: Any) -> bytes:
    return f"{os.getpid()} {ctx.task_id} {ctx.attempt}\n".encode()


@registry.task
async def echo(ctx: cairnq.TaskContext, payload: Any) -> Any:
    return payload


@registry.task
async def unhurried(ctx: cairnq.TaskContext, payload: Any) -> Any:
    await asyncio.sleep(0.05)  # sleep: a task that takes a while
    return payload


@registry.task
async def gated(ctx: cairnq.TaskContext, gate: str) -> str:
    reader, writer = await asyncio.open_unix_connection(gate)
    try:
        writer.write(_arrival(ctx))
        return (await reader.readline()).decode().strip()
    finally:
        writer.close()


@registry.task
async def weighty(ctx: cairnq.TaskContext, payload: dict[str, str]) -> str:
    """`gated`, with ballast in its payload."""
    return await gated(ctx, payload["gate"])


@registry.task
def gated_plain(ctx: Any, gate: str) -> str:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(gate)
        connection.sendall(_arrival(ctx))
        return connection.makefile().readline().strip()


@registry.task
async def stubborn(ctx: cairnq.TaskContext, gate: str) -> str:
    """Swallows its cancellation."""
    reader, writer = await asyncio.open_unix_connection(gate)
    writer.write(_arrival(ctx))
    while True:
        try:
            return (await reader.readline()).decode().strip()
        except asyncio.CancelledError:
            continue


@registry.task
async def blocking(ctx: cairnq.TaskContext, payload: dict[str, Any]) -> str:
    """Holds the event loop, as an async handler must not."""
    time.sleep(payload["seconds"])  # noqa: ASYNC251  # sleep: it blocks the loop, as is asked
    return "done"


@registry.task
def resting(ctx: Any, seconds: float) -> None:
    time.sleep(seconds)  # sleep: a call that cannot be cancelled


@registry.task
async def recorded(ctx: cairnq.TaskContext, ledger: str) -> None:
    reader, writer = await asyncio.open_unix_connection(ledger)
    writer.write(_arrival(ctx))
    await reader.readline()
    await asyncio.sleep(0.05)  # sleep: a task that takes a while
    writer.close()


@registry.task
def recorded_plain(ctx: Any, ledger: str) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(ledger)
        connection.sendall(_arrival(ctx))
        connection.makefile().readline()
        time.sleep(0.02)  # sleep: a task that takes a while


@registry.task
def endless(ctx: Any) -> None:
    """Neither returns nor can be cancelled."""
    while True:
        time.sleep(1)  # sleep: for ever


@registry.task
async def with_daemon(ctx: cairnq.TaskContext, gate: str) -> None:
    """Starts a program in a session of its own: the death of the worker's group does not reach it."""
    reader, writer = await asyncio.open_unix_connection(gate)
    child = await asyncio.create_subprocess_exec("sleep", "600", start_new_session=True)  # sleep: the program's name
    writer.write(f"{child.pid} {ctx.task_id} {ctx.attempt}\n".encode())
    await reader.readline()


LEAK: list[bytearray] = []


@registry.task
async def leaking(ctx: cairnq.TaskContext, mebibytes: int) -> None:
    LEAK.append(bytearray(os.urandom(1)) * (mebibytes << 20))
    await asyncio.sleep(2)  # sleep: a task that lasts a few beats


@registry.task
async def poison(ctx: cairnq.TaskContext, payload: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@registry.task
async def until_canceled(ctx: cairnq.TaskContext, gate: str) -> None:
    _, writer = await asyncio.open_unix_connection(gate)
    writer.write(_arrival(ctx))
    while not await ctx.canceled():  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0.01)  # sleep: a handler that looks now and then, as real ones do


@registry.task
async def with_child(ctx: cairnq.TaskContext, gate: str) -> None:
    """Starts a program of its own, which says its pid in the worker's stead and would outlive it."""
    reader, writer = await asyncio.open_unix_connection(gate)
    child = await asyncio.create_subprocess_exec("sleep", "600")  # sleep: the program's name
    writer.write(f"{child.pid} {ctx.task_id} {ctx.attempt}\n".encode())
    await reader.readline()


@registry.task
async def environment(ctx: cairnq.TaskContext, names: list[str]) -> list[str]:
    """Which of these are set here."""
    return [name for name in names if name in os.environ]


@registry.task
async def hoard(ctx: cairnq.TaskContext, mib: int) -> int:
    """Keeps so much memory until its process goes, and holds its lease for a few beats."""
    _hoard.append(bytearray(b"x") * (mib << 20))
    await asyncio.sleep(3)  # sleep: so that beats find it at work
    return mib


_hoard: list[bytearray] = []
