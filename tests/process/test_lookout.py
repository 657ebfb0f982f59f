"""Workers rest while the keeper watches for them: nothing is missed, and nobody asks in vain."""

from __future__ import annotations

import asyncio
import signal

import psycopg
import pytest

from tests.process.support import PATIENCE, until
from tests.process.test_control import status

FLEET = """
app = "gates:registry"
retry_backoff = "300ms"
[queues.default]
processes = 3
concurrency = 4
"""
NEVER = 'poll = "1h"\n'
"""So that whoever is not woken does not look: what the keeper misses is missed."""


@pytest.mark.sqlite
async def test_a_task_is_taken_when_its_time_has_come_though_no_worker_polls(runs, client):
    run = await runs.start(NEVER + FLEET)
    await run.event("keeper.listening")
    await run.ready()
    later = [await client.submit("echo", number, run_at_delay_ms=200 * number) for number in range(1, 4)]
    for number, task in enumerate(later, 1):
        assert (await client.wait(task.id)).result == number
    assert await run.stop() == 0


@pytest.mark.sqlite
async def test_an_attempt_that_waits_out_its_backoff_is_not_forgotten(runs, client):
    run = await runs.start(NEVER + FLEET)
    await run.event("keeper.listening")
    await run.ready()
    task = await client.wait((await client.submit("blocking", {}, max_attempts=3)).id)
    assert (task.status, task.attempt) == ("failed", 3)
    assert await run.stop() == 0


async def test_what_nothing_tells_of_is_found_all_the_same(runs, client, database):
    run = await runs.start(NEVER + FLEET)
    await run.event("keeper.listening")
    await run.ready()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("alter table cairnq_tasks disable trigger cairnq_tasks_notify")
        for task in [await client.submit("echo", number) for number in range(20)]:
            while not (await client.get(task.id)).succeeded:
                pass
    assert await run.stop() == 0


async def test_a_keeper_that_hangs_on_an_idle_fleet_is_replaced_though_no_worker_polls(runs, client):
    run = await runs.start(NEVER + FLEET)
    await run.event("keeper.listening")
    await run.ready()
    keeper = (await run.event("keeper.ready"))["pid"]
    run.kill(keeper, signal.SIGSTOP)
    task = await client.submit("echo", 1)
    assert (await client.wait(task.id)).result == 1
    assert (await run.event("keeper.killed", pid=keeper))["reason"] == "it does not answer"
    assert await run.stop() == 0


@pytest.mark.sqlite
async def test_a_task_is_taken_while_the_supervisor_is_stopped(runs, client):
    """The keeper rings for the worker itself: there is nobody between them."""
    run = await runs.start(NEVER + FLEET)
    await run.event("keeper.listening")
    await run.ready()
    assert (await client.wait((await client.submit("echo", 1)).id)).result == 1
    run.send(signal.SIGSTOP)
    try:
        for number in range(2, 5):
            assert (await client.wait((await client.submit("echo", number)).id)).result == number
    finally:
        run.send(signal.SIGCONT)
    assert await run.stop() == 0


def sessions(database, where):
    """When each session of the fleet began its last statement."""
    with psycopg.connect(database) as connection:
        return dict(
            connection.execute(
                f"select pid, query_start from pg_stat_activity where application_name = 'fleet' and {where}"
            ).fetchall()
        )


LOOKS = "query like '%next_at_ms%'"
WORKERS = f"not ({LOOKS} or query ilike 'listen %')"
"""The keeper's two sessions are known by what they do; others come and go, for a self-test or a round of upkeep."""


async def test_workers_rest_while_notifications_arrive_and_look_by_themselves_while_they_do_not(runs, client, database):
    run = await runs.start(FLEET, dsn=f"{database}?application_name=fleet")
    await run.event("keeper.listening")
    await run.ready()
    assert await client.call("echo", 1) == 1
    assert (await status(run))["keeper"]["listening"] is True
    before = await rested(database)
    assert len(before) >= 3
    with psycopg.connect(database, autocommit=True) as connection:
        ended = "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'fleet'"
        ended += " and query ilike 'listen %'"
        assert connection.execute(ended).fetchone() == (1,)
    await run.event("keeper.listen-lost")
    await until(lambda: len(sessions(database, WORKERS).items() - before.items()) >= 3)
    await run.event("keeper.listening")
    assert (await status(run))["keeper"]["listening"] is True
    assert await client.call("echo", 2) == 2
    assert await run.stop() == 0


async def test_workers_look_by_themselves_while_the_keeper_cannot(runs, client, database):
    """Notifications go on: they need no table."""
    run = await runs.start('lease = "3s"' + FLEET)
    await run.event("keeper.listening")
    await run.ready()
    with psycopg.connect(database) as connection:
        connection.execute("lock table cairnq_tasks in access exclusive mode")
        await run.event("keeper.listen-lost")
    await run.event("keeper.listening")
    assert await client.call("echo", 1) == 1
    assert await run.stop() == 0


async def test_a_fleet_at_rest_has_a_connection_for_each_worker_and_two_for_the_keeper(runs, client, database):
    run = await runs.start(FLEET, dsn=f"{database}?application_name=fleet")
    await run.event("keeper.listening")
    await run.ready()
    await until(lambda: len(sessions(database, "true")) == 3 + 2)
    assert await run.stop() == 0


async def rested(database):
    """The workers' last statements, once two looks of the keeper went by without one. (Polls come six times a look.)"""
    calm = 0
    async with asyncio.timeout(PATIENCE):
        while calm < 2:
            before = sessions(database, WORKERS)
            await a_look(database)
            calm = calm + 1 if sessions(database, WORKERS) == before else 0
    return before


async def a_look(database):
    seen = sessions(database, LOOKS)
    await until(lambda: sessions(database, LOOKS) != seen)
