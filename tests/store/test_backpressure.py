"""A full queue holds a submit back: until there is room, until patience ends, and never inside a transaction."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cairnq import CairnQ, InvalidArgument, QueueFull
from tests.store.conftest import OpenClient
from tests.support.tasks import ME

AT_ONCE = {"max_queue_wait_ms": 0}
PATIENT = {"max_queue_wait_ms": 60_000, "queue_poll_interval_ms": 5}


async def fill(client: CairnQ, count: int, queue: str = "default") -> None:
    for _ in range(count):
        await client.store.submit("x", queue=queue)


async def test_a_queue_takes_what_its_limit_allows(open_client: OpenClient) -> None:
    client = await open_client(max_queue_depth=3, **AT_ONCE)
    for _ in range(3):
        await client.submit("x")
    with pytest.raises(QueueFull, match="'default' has 3 or more tasks queued .* gave up after [0-9]+ ms") as full:
        await client.submit("x")
    assert (full.value.queue, full.value.max_depth) == ("default", 3)
    assert (await client.stats())["default"]["queued"] == 3
    await client.submit("x", queue="each queue by itself")


async def test_limits_are_by_queue_where_they_are_given_so(open_client: OpenClient) -> None:
    client = await open_client(max_queue_depth={"narrow": 1}, **AT_ONCE)
    await fill(client, 50)
    await client.submit("x")
    await client.submit("x", queue="narrow")
    with pytest.raises(QueueFull):
        await client.submit("x", queue="narrow")
    with pytest.raises(QueueFull):
        await client.submit_many([{"name": "x"}, {"name": "x", "queue": "narrow"}])
    await client.submit_many([{"name": "x"}, {"name": "x", "queue": "wide"}])


async def test_a_submit_waits_for_room(open_client: OpenClient) -> None:
    client = await open_client(max_queue_depth=2, **PATIENT)
    await fill(client, 2)
    for submit in (lambda: client.submit("late"), lambda: client.submit_many([{"name": "late"}])):
        waiting = asyncio.create_task(submit())
        done, _ = await asyncio.wait({waiting}, timeout=0.05)
        assert not done
        assert len(await client.store.claim(["default"], ME)) == 1
        await waiting
    assert [task.name for task in await client.list(name="late")] == ["late", "late"]


async def test_patience_ends(open_client: OpenClient) -> None:
    client = await open_client(max_queue_depth=1, max_queue_wait_ms=60, queue_poll_interval_ms=5)
    await fill(client, 1)
    with pytest.raises(QueueFull) as full:
        await client.submit("x")
    assert full.value.waited_ms >= 60
    assert (await client.stats())["default"]["queued"] == 1


async def test_only_what_is_queued_takes_room(open_client: OpenClient) -> None:
    client = await open_client(max_queue_depth=1, **AT_ONCE)
    await client.submit("x")
    [running] = await client.store.claim(["default"], ME)
    ended = await client.submit("x")
    await client.cancel(ended.id)
    assert (await client.submit("x", delay_ms=60_000)).queued
    with pytest.raises(QueueFull):
        await client.submit("x")
    assert (await client.store.complete(running.id, ME, None)).succeeded


async def test_submitters_at_once_pass_the_limit_by_their_number_at_most(open_client: OpenClient) -> None:
    client = await open_client(max_queue_depth=5, **AT_ONCE)
    outcomes = await asyncio.gather(*(client.submit("x") for _ in range(40)), return_exceptions=True)
    assert {type(outcome).__name__ for outcome in outcomes} <= {"Task", "QueueFull"}
    accepted = sum(not isinstance(outcome, QueueFull) for outcome in outcomes)
    assert accepted == (await client.stats())["default"]["queued"]
    with pytest.raises(QueueFull):
        await client.submit("x")


WRONG: list[tuple[Any, str]] = [
    (lambda client: client.submit("x", queue=""), "queue must not be empty"),
    (lambda client: client.submit("x", queue=["q"]), "queue must be a string, not list"),
    (lambda client: client.submit("x", max_attempts=0), "max_attempts"),
    (lambda client: client.submit("x", {1}), "the payload is not JSON"),
    (lambda client: client.submit_many(["x"]), "item 0 of submit_many must be a mapping"),
    (lambda client: client.submit_many([{"name": "x", "queue": 5}]), "queue must be a string, not int"),
    (lambda client: client.submit_many([{"name": "x"}, {"name": ""}]), "name must not be empty"),
]


@pytest.mark.parametrize("limit", [None, 1, {"default": 1}])
async def test_what_cannot_be_right_is_refused_before_it_waits(open_client: OpenClient, limit: Any) -> None:
    client = await open_client(max_queue_depth=limit, **PATIENT)
    await fill(client, 1)
    for call, says in WRONG:
        with pytest.raises(ValueError, match=says):
            await asyncio.wait_for(call(client), 60)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "5", {"q": 0}, {"": 5}, {5: 5}])
def test_a_limit_that_cannot_be_right_is_refused_by_name(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match="max_queue_depth"):
        CairnQ.postgres("postgresql://postgres@127.0.0.1/x", max_queue_depth=wrong)
