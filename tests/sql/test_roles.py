"""The rights that `cairnq roles` prints: enough for a client and for a worker, and no more."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from cairnq import CairnQ
from cairnq.pure.errors import PermissionDenied
from tests.support.roles import role_of


@pytest.fixture
def role(request: pytest.FixtureRequest, database: str) -> Iterator[str]:
    """The DSN of a new role, whose rights are those of the script in the test's parameter."""
    with role_of(database, request.param) as dsn:
        yield dsn


@pytest.mark.statement("roles/client")
@pytest.mark.parametrize("role", ["client"], indirect=True)
async def test_a_client_submits_and_looks_after_its_tasks_and_cannot_work(role: str, database: str) -> None:
    async with CairnQ.postgres(role) as client, CairnQ.postgres(database) as owner:
        task = await client.submit("a", 1, key="k")
        assert (await client.submit("a", 2, key="k", conflict="replace")).id != task.id
        await client.submit_many([{"name": "b", "payload": n} for n in range(3)])
        assert await client.get(task.id)
        assert len(await client.list(name="b")) == 3
        assert (await client.stats())["default"]["queued"] == 4
        (claimed, *_) = await owner.store.claim(["default"], "w", 30_000, 10, names=["a"])
        await owner.store.fail(claimed.id, "w", {"code": "x", "message": "y"}, retryable=False)
        assert (await client.wait(claimed.id)).failed
        assert await client.retry(claimed.id)
        assert await client.cancel(claimed.id)
        (claimed, *_) = await owner.store.claim(["default"], "w", 30_000, 1)
        with pytest.raises(PermissionDenied):
            await client.store.succeed(claimed.id, "w", 1)
        with pytest.raises(PermissionDenied):
            await client.purge(older_than_ms=0)


@pytest.mark.statement("roles/worker")
@pytest.mark.parametrize("role", ["worker"], indirect=True)
async def test_a_worker_does_all_but_make_tables(role: str) -> None:
    async with CairnQ.postgres(role) as client:
        store, task = client.store, await client.submit("a", 1, key="k")
        (claimed,) = await store.claim(["default"], "w", 30_000, 1)
        assert (await store.heartbeat(task.id, "w", 30_000)) is not None
        assert (await store.succeed(claimed.id, "w", 2)).succeeded
        await store.recover()
        assert await store.take_duty("upkeep", "me", 1000)
        assert len(await client.purge(older_than_ms=0)) == 1
    with psycopg.connect(role) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("drop table cairnq_tasks")
