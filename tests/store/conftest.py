"""Fixtures of the conformance suite: beside `store` and `client`, more of both on the same database.

Tests beside this file know nothing of the backend behind `store`, `client`, `open_store`, `open_client` and
`test_clock`; what only PostgreSQL has (sessions, pools, roles, locks) is in postgres/.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from cairnq import CairnQ, PostgresStore
from tests.support.routes import Route

OpenStore = Callable[..., Awaitable[PostgresStore]]
OpenClient = Callable[..., Awaitable[CairnQ]]


@pytest.fixture
async def open_store(store: PostgresStore, route: Route) -> AsyncIterator[OpenStore]:
    """`await open_store(**options)`: another connected store on the database of `store`."""
    async with AsyncExitStack() as opened:

        async def open_another(**options: Any) -> PostgresStore:
            another: PostgresStore = route.store(**options)
            opened.push_async_callback(another.close)
            await another.connect()
            return another

        yield open_another


@pytest.fixture
async def open_client(store: PostgresStore, route: Route) -> AsyncIterator[OpenClient]:
    """`await open_client(**options)`: another connected client on the database of `store`."""
    async with AsyncExitStack() as opened:

        async def open_another(**options: Any) -> CairnQ:
            return await opened.enter_async_context(route.client(**options))

        yield open_another
