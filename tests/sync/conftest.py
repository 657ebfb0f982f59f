"""Blocking clients on a fresh database of either kind, and a worker beside them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import cairnq.sync
from cairnq import BlockingContext, Registry, TaskContext, TaskDef, Worker
from tests.support.routes import Route, is_file


@dataclass
class Order:
    number: int
    lines: list[str]


@dataclass
class Receipt:
    order: Order
    total: float


CHARGE = TaskDef[Order, Receipt]("charge")

registry = Registry()


@registry.task(CHARGE)
def charge(ctx: BlockingContext, order: Order) -> Receipt:
    return Receipt(order, 2.5 * len(order.lines))


@registry.task
async def double(ctx: TaskContext, number: int) -> int:
    return number * 2


@registry.task
async def refuse(ctx: TaskContext, reason: str) -> None:
    await ctx.fail(reason, retryable=False)


def opened(database: str, **options) -> cairnq.sync.CairnQ:
    make = cairnq.sync.CairnQ.sqlite if is_file(database) else cairnq.sync.CairnQ.postgres
    return make(database, **options)


@pytest.fixture
def tasks(database: str) -> Iterator[cairnq.sync.CairnQ]:
    with opened(database) as client:
        yield client


@pytest.fixture
def worker(database: str) -> Iterator[Worker]:
    """Runs while the test does, on a thread of its own."""
    worker = Route(database).worker(registry=registry, concurrency=4, poll_interval_ms=50)
    thread = threading.Thread(target=lambda: asyncio.run(worker.run()))
    thread.start()
    yield worker
    worker.stop()
    thread.join()
