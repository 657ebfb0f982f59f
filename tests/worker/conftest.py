"""Workers over a real database, whose handlers are gates and whose events are recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cairnq import CairnQ, Registry, Worker
from cairnq.store.postgres import PostgresStore
from tests.support.gates import Recorder
from tests.support.proxy import Proxy
from tests.support.rigs import MakeRig, Rig

MakeWorker = Callable[..., Worker]


@pytest.fixture
async def events() -> Recorder:
    return Recorder()


@pytest.fixture
async def make_worker(store: PostgresStore, events: Recorder) -> MakeWorker:
    """A worker of queue `default` over the test's store, or another given as `store=`."""

    def make(*, queues: tuple[str, ...] = ("default",), store: Any = store, **options: Any) -> Worker:
        worker = Worker(store, queues, **{"poll_interval_ms": 50, "retry_backoff_ms": 0, **options})
        worker._emit = events
        return worker

    return make


@pytest.fixture
async def client(store: PostgresStore) -> AsyncIterator[CairnQ]:
    """A client over the same store."""
    async with CairnQ(store) as client:
        yield client


@pytest.fixture
async def far_store(proxy: Proxy, database: str) -> AsyncIterator[PostgresStore]:
    """A store that reaches the database through the proxy."""
    store = PostgresStore(proxy.dsn(database), min_size=4)
    await store.connect()
    yield store
    await store.close()


@pytest.fixture
async def make_rig(store: PostgresStore, events: Recorder) -> MakeRig:
    """An engine that runs as long as the body of `async with make_rig(registry, **options) as rig`."""

    @asynccontextmanager
    async def make(registry: Registry, **options: Any) -> AsyncIterator[Rig]:
        rig = Rig(store, registry, events, **options)
        running = asyncio.create_task(rig.engine.run())
        try:
            yield rig
        finally:
            await rig.engine.drain(rig.clock())
            await running

    return make
