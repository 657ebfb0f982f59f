"""Retention deletes what finished long enough ago, by status, in batches, for as long as the client is open."""

from __future__ import annotations

from typing import Any

import pytest

from cairnq import CairnQ, InvalidArgument, Retention
from cairnq.store.retention import sweep
from tests.store.conftest import OpenClient
from tests.support.clock import ClockOfDatabase
from tests.support.tasks import in_state

STATES = ("queued", "running", "succeeded", "failed", "canceled")
DAY = 86_400_000


async def left(client: CairnQ) -> set[str]:
    return {task.status for task in await client.list()}


async def until_left(client: CairnQ, *states: str) -> None:
    while await left(client) != set(states):
        pass


async def test_a_sweep_deletes_what_is_old_enough(client: CairnQ, test_clock: ClockOfDatabase) -> None:
    for state in STATES:
        await in_state(client.store, state)
    assert await sweep(client.store, Retention(DAY)) == 0
    test_clock.advance(DAY)
    assert await sweep(client.store, Retention(DAY)) == 3
    assert await left(client) == {"queued", "running"}


async def test_each_status_has_its_age_and_others_stay(client: CairnQ, test_clock: ClockOfDatabase) -> None:
    for state in STATES:
        await in_state(client.store, state)
    rules = Retention({"succeeded": 1000, "canceled": 5000})
    test_clock.advance(1000)
    assert await sweep(client.store, rules) == 1
    assert await left(client) == {"queued", "running", "failed", "canceled"}
    test_clock.advance(4000)
    assert await sweep(client.store, rules) == 1
    assert await left(client) == {"queued", "running", "failed"}


async def test_a_sweep_goes_on_until_nothing_is_left(client: CairnQ) -> None:
    for _ in range(7):
        await in_state(client.store, "succeeded")
    assert await sweep(client.store, Retention(0, limit=3)) == 7


async def test_an_open_client_sweeps_at_once_and_at_each_interval(client: CairnQ, open_client: OpenClient) -> None:
    await in_state(client.store, "succeeded")
    sweeping = await open_client(retention=Retention(0, interval_ms=5))
    await until_left(client)
    await in_state(client.store, "failed")
    await until_left(client)
    await sweeping.close()
    await in_state(client.store, "failed")
    assert await left(client) == {"failed"}


async def test_an_age_alone_is_a_retention(client: CairnQ, open_client: OpenClient) -> None:
    await in_state(client.store, "canceled")
    await open_client(retention=0)
    await until_left(client)


async def test_a_client_that_was_never_connected_sweeps_from_its_first_submit_on(
    client: CairnQ, open_client: OpenClient, route: Any
) -> None:
    await in_state(client.store, "succeeded")
    lazy = route.client(retention=0)
    await lazy.submit("x")
    await until_left(client, "queued")
    await lazy.close()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"older_than_ms": -1}, "retention older_than_ms must be from 0"),
        ({"older_than_ms": 1.5}, "retention older_than_ms must be an integer"),
        ({"older_than_ms": True}, "retention older_than_ms must be an integer, not bool"),
        ({"older_than_ms": "1d"}, "retention older_than_ms must be an integer, not str"),
        ({"older_than_ms": {"queued": 1}}, "only finished tasks can be purged: status 'queued'"),
        ({"older_than_ms": {"failed": -1}}, "retention older_than_ms"),
        ({"older_than_ms": 1, "interval_ms": 0}, "retention interval_ms"),
        ({"older_than_ms": 1, "limit": 0}, "retention limit"),
    ],
)
def test_a_retention_that_cannot_be_right_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArgument, match=says):
        Retention(**options)


@pytest.mark.parametrize("wrong", [-1, True, "1d", 1.5, {"succeeded": 1}, [1]])
def test_an_option_that_is_no_retention_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match="retention"):
        CairnQ.postgres("postgresql://postgres@127.0.0.1/x", retention=wrong)
