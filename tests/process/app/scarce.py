"""An application with a resource that only one call on this host may hold."""

import asyncio
import os

from gates import echo

import cairnq

registry = cairnq.Registry(resources={"gpu": 1})
registry.register("echo", echo)


@registry.task(resource="gpu")
async def train(ctx, gate):
    reader, writer = await asyncio.open_unix_connection(gate)
    writer.write(f"{os.getpid()} {ctx.task_id} {ctx.attempt}\n".encode())
    try:
        return (await reader.readline()).decode().strip()
    finally:
        writer.close()
