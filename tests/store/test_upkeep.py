"""What a keeper asks beside leases: the backlog, and a duty that one has for all."""

from __future__ import annotations

import asyncio

import pytest

from cairnq import InvalidArgument
from cairnq.pure.envelope import worker_crashed
from cairnq.pure.models import Outlook, QueueBacklog, Settlement


async def test_the_backlog_counts_what_is_due_and_what_runs(store):
    for _ in range(4):
        await store.submit("a", queue="mail")
    await store.submit("a", queue="mail", run_at_delay_ms=3_600_000)
    await store.submit("a", queue="elsewhere")
    await store.claim(["mail"], "worker_x", limit=1)
    found = await store.backlog(["mail", "empty"], 1000)
    assert (found["mail"].due, found["mail"].running) == (3, 1)
    assert found["mail"].oldest_ms >= 0
    assert found["empty"] == QueueBacklog(0, 0, None, 0)
    assert found.keys() == {"mail", "empty"}


async def test_the_backlog_is_counted_no_further_than_asked(store):
    for _ in range(5):
        await store.submit("a", queue="mail")
    assert (await store.backlog(["mail"], 3))["mail"].due == 3


async def test_the_outlook_says_what_is_due_what_runs_and_when_the_next_one_is_due(store):
    queues = ["mail", "later", "empty"]
    assert await store.outlook(queues, 1000, expired=True) == Outlook(frozenset(), frozenset(), None, expired=False)
    await store.submit("a", queue="mail", priority=3, run_at_delay_ms=3_600_000)
    await store.submit("a", queue="mail", priority=1)
    await store.submit("a", queue="later", run_at_delay_ms=1_800_000)
    await store.submit("a", queue="elsewhere", run_at_delay_ms=1_000)
    found = await store.outlook(queues, 1000, expired=False)
    assert (found.due, found.busy, found.expired) == ({"mail"}, frozenset(), None)
    assert 1_700_000 < found.next_in_ms <= 1_800_000
    await store.claim(["mail"], "worker_x", limit=1)
    found = await store.outlook(queues, 1000, expired=True)
    assert (found.due, found.busy, found.expired) == (frozenset(), {"mail"}, False)


async def test_the_outlook_tells_of_a_lease_that_is_over_in_whatever_queue(store):
    await store.submit("a", queue="elsewhere")
    await store.claim(["elsewhere"], "worker_x", 1)
    while not (await store.outlook(["mail"], 1000, expired=True)).expired:
        pass  # a millisecond at the most
    await store.recover(1000)
    assert not (await store.outlook(["mail"], 1000, expired=True)).expired


async def test_the_outlook_takes_a_suspect_for_busy_and_not_for_due(store):
    await store.submit("a", queue="mail")
    crash = worker_crashed("it died", {"signal": 9})
    for _ in range(2):
        [held] = await store.claim(["mail"], "worker_x")
        await store.settle_many("worker_x", [Settlement.crash(held.id, held.attempt, crash, alone=False, delay_ms=0)])
    found = await store.outlook(["mail"], 1000, expired=False)
    assert (found.due, found.busy, found.next_in_ms) == (frozenset(), {"mail"}, None)


async def test_one_holder_has_a_duty_and_keeps_it(store):
    assert await store.take_duty("retention", "host_a", 60_000)
    assert not await store.take_duty("retention", "host_b", 60_000)
    assert await store.take_duty("retention", "host_a", 60_000)
    assert await store.take_duty("another", "host_b", 60_000)


async def test_a_duty_passes_on_when_its_lease_has_ended(store):
    assert await store.take_duty("retention", "host_a", 1)
    while not await store.take_duty("retention", "host_b", 60_000):  # a millisecond at the most
        continue
    assert not await store.take_duty("retention", "host_a", 60_000)


async def test_a_race_for_a_duty_has_one_winner(store):
    won = await asyncio.gather(*(store.take_duty("retention", f"host_{number}", 60_000) for number in range(8)))
    assert sum(won) == 1


@pytest.mark.parametrize(("duty", "holder", "lease"), [("", "a", 1), ("a", "", 1), ("a", "b", 0), ("a\0", "b", 1)])
async def test_odd_duties_are_refused(store, duty, holder, lease):
    with pytest.raises(InvalidArgument):
        await store.take_duty(duty, holder, lease)
