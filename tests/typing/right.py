"""Read by type checkers, not run: what they must infer of an application that is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict, assert_type

import cairnq
import cairnq.sync


class Picture(TypedDict):
    url: str
    width: int


@dataclass
class Order:
    number: int
    lines: list[str]


@dataclass
class Receipt:
    total: float


RESIZE = cairnq.TaskDef[Picture, str]("resize")
CHARGE = cairnq.TaskDef[Order, Receipt]("charge")
SWEEP = cairnq.TaskDef[None, int]("sweep")

registry = cairnq.Registry(resources={"gpu": 1})
worker = cairnq.Worker.sqlite("tasks.db", registry=registry)


@registry.task(RESIZE, resource="gpu")
async def resize(ctx: cairnq.TaskContext, payload: Picture) -> str:
    assert_type(await ctx.canceled(), bool)
    assert_type(await ctx.submit(CHARGE, Order(1, [])), cairnq.Task)
    await ctx.submit(SWEEP, delay_ms=10)
    await ctx.submit("by name", {"anything": [1, None]})
    return payload["url"] + str(payload["width"])


@worker.task(CHARGE)
def charge(ctx: cairnq.BlockingContext, order: Order) -> Receipt:
    assert_type(ctx.canceled(), bool)
    assert_type(ctx.submit(RESIZE, Picture(url="u", width=1)), cairnq.Task)
    return Receipt(len(order.lines) * 1.0)


@registry.task(SWEEP)
async def sweep(ctx: cairnq.TaskContext) -> int:
    return 1


@registry.task(cairnq.TaskDef[Picture, str]("batched"), batch=8)
async def batched(contexts: list[cairnq.TaskContext]) -> dict[str, str]:
    return {ctx.task_id: "done" for ctx in contexts}


@registry.task
async def by_its_own_name(ctx: cairnq.TaskContext, payload: Any) -> None: ...


@registry.task("by name", concurrency=2)
def by_name(ctx: cairnq.BlockingContext) -> str:
    return "unchanged"


async def asynchronous(client: cairnq.CairnQ) -> None:
    assert_type(await client.call(RESIZE, Picture(url="u", width=1), timeout_ms=5), str)
    assert_type(await client.call(CHARGE, Order(1, []), key="k", conflict="reject"), Receipt)
    assert_type(await client.call(SWEEP), int)
    assert_type(await client.call("by name", 1), Any)
    assert_type(await client.submit(RESIZE, Picture(url="u", width=1), priority=2), cairnq.Task)
    assert_type(await client.submit("by name"), cairnq.Task)
    assert_type(await client.get("id"), cairnq.Task | None)


def blocking(tasks: cairnq.sync.CairnQ, session: object) -> None:
    assert_type(tasks.call(RESIZE, Picture(url="u", width=1)), str)
    assert_type(tasks.call(CHARGE, Order(1, []), wait_timeout_ms=1), Receipt)
    assert_type(tasks.call(SWEEP), int)
    assert_type(tasks.submit(CHARGE, Order(1, []), session=session), cairnq.Task)
    assert_type(tasks.submit(SWEEP), cairnq.Task)
    assert_type(tasks.wait("id"), cairnq.Task)


assert_type(by_name(cairnq.BlockingContext.__new__(cairnq.BlockingContext)), str)
