"""Read by type checkers, not run: each marked line must be refused, and no other."""

from __future__ import annotations

import cairnq
import cairnq.sync
from tests.typing.right import CHARGE, RESIZE, SWEEP, Order, Picture, registry, worker


@registry.task(RESIZE)  # wrong: the payload is another
async def another_payload(ctx: cairnq.TaskContext, payload: Order) -> str:
    return ""


@registry.task(RESIZE)  # wrong: the result is another
async def another_result(ctx: cairnq.TaskContext, payload: Picture) -> int:
    return 1


@worker.task(RESIZE)  # wrong: a plain function's context blocks
def another_context(ctx: cairnq.TaskContext, payload: Picture) -> str:
    return ""


@registry.task(RESIZE, batch=2)  # wrong: a batch comes as a list
async def no_list(ctx: cairnq.TaskContext, payload: Picture) -> str:
    return ""


async def asynchronous(client: cairnq.CairnQ, ctx: cairnq.TaskContext) -> None:
    await client.submit(RESIZE, {"url": "u"})  # wrong: a key is missing
    await client.submit(RESIZE)  # wrong: the payload is missing
    await client.submit(SWEEP, 1)  # wrong: it takes none
    await client.submit("x", colour="red")  # wrong: no such keyword
    await client.submit("x", conflict="ignore")  # wrong: no such strategy
    await client.call(CHARGE, {"number": 1})  # wrong: no instance
    await ctx.submit(CHARGE, "one")  # wrong: no instance
    number: int = await client.call(RESIZE, Picture(url="u", width=1))  # wrong: a string
    print(number)


def blocking(tasks: cairnq.sync.CairnQ, ctx: cairnq.BlockingContext) -> None:
    tasks.submit(RESIZE, {"url": 1, "width": 1})  # wrong: a URL is a string
    ctx.submit(CHARGE)  # wrong: the payload is missing
    number: int = tasks.call(CHARGE, Order(1, []))  # wrong: a receipt
    print(number)
