"""Leases end by this host's wall clock; where it was set, a holder that is trusted by another clock renews them."""

from __future__ import annotations

from cairnq.pure.models import Beat

ME = "worker_me"


async def test_a_lapsed_lease_is_renewed_for_its_holder_alone(store, other):
    tasks = await store.submit_many([{"name": "a"} for _ in range(3)])
    await store.claim_many(["default"], ME, 30_000, 3, None)
    other.execute("update cairnq_tasks set lease_until_ms = 1")
    mine, foreign, stale = (task.id for task in tasks)
    beats = [Beat(mine, ME, 1, 30_000), Beat(foreign, "worker_other", 1, 30_000), Beat(stale, ME, 2, 30_000)]
    assert await store.beat_many(beats) == [None, None, None]
    await store.renew_lapsed(beats)
    assert await store.beat_many(beats) == [False, None, None]
    assert (await store.get(mine)).lease_until_ms > tasks[0].created_at_ms
    assert (await store.get(foreign)).lease_until_ms == (await store.get(stale)).lease_until_ms == 1


async def test_what_has_ended_stays_ended(store):
    task = await store.submit("a")
    await store.claim_many(["default"], ME, 30_000, 1, None)
    await store.succeed(task.id, ME, "done")
    await store.renew_lapsed([Beat(task.id, ME, 1, 30_000)])
    assert (await store.get(task.id)).succeeded
