"""Row 19 at full size: fifty tasks in flight while the database is away, for less than a lease and for longer."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from tests.support.figures import figure

LEASE = figure(4, 20)
CUT = figure(6, 60)
"""Seconds for which nothing comes through."""

FLEET = f"""
app = "gates:registry"
lease = "{LEASE}s"
[queues.default]
processes = 2
concurrency = 25
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.fault(row=19)
async def test_a_result_is_kept_while_trust_holds_and_nobody_settles_when_it_has_ended(
    runs, client, gate, proxy, database
):
    run = await runs.start(FLEET, dsn=proxy.dsn(database))
    await run.ready()
    names = ("gated", "gated_plain")
    await client.submit_many([{"name": names[number % 2], "payload": gate.path} for number in range(50)])
    arrivals = await gate.arrivals(50)
    kept, lost = arrivals[:25], arrivals[25:]

    proxy.refuse()
    for arrival in kept:
        arrival.let_go("kept")
    await run.event("database.failed")
    proxy.pass_through()
    for arrival in kept:
        done = await client.wait(arrival.task_id)
        assert (done.status, done.result, done.attempt) == ("succeeded", "kept", 1)

    with psycopg.connect(database, autocommit=True) as watch:
        over = watch.execute(f"select clock_timestamp() + interval '{CUT} seconds'").fetchone()[0]
        proxy.black_hole()
        await run.events("lease.lost", 25)
        for arrival in lost:
            arrival.let_go("too late")
        while not watch.execute("select clock_timestamp() >= %s", [over]).fetchone()[0]:  # noqa: ASYNC110 - a clock
            await asyncio.sleep(0.2)  # sleep: so long as the cut is to last, by the server's own clock
        assert (await client.stats())["default"] == {**EMPTY, "running": 25, "succeeded": 25}
        proxy.pass_through()

    again = await gate.arrivals(25)
    assert {(arrival.task_id, arrival.attempt) for arrival in again} == {(arrival.task_id, 2) for arrival in lost}
    for arrival in again:
        arrival.let_go("again")
    for arrival in again:
        done = await client.wait(arrival.task_id)
        assert (done.status, done.result, done.attempt) == ("succeeded", "again", 2)
    assert gate.waiting == 0
    assert await run.stop() == 0
    assert run.count("worker.died") == run.count("keeper.died") == 0


EMPTY = {"queued": 0, "running": 0, "succeeded": 0, "failed": 0, "canceled": 0}
