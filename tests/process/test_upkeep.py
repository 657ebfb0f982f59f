"""Retention, vacuum and the backlog's sample, as a running keeper does them."""

from __future__ import annotations

import signal

import psycopg
import pytest

from cairnq.pure.errors import PermissionDenied
from cairnq.store.postgres import PostgresStore
from cairnq_supervisor.roles import caretaker
from cairnq_supervisor.roles.caretaker import Caretaker
from tests.process.test_control import status

CONFIG = """
app = "gates:registry"
[queues.default]
concurrency = 1
[retention]
succeeded = "1h"
canceled = "0s"
"""


@pytest.fixture(autouse=True)
def runtime_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))


async def test_finished_tasks_go_at_their_age_and_others_stay(runs, client):
    young = await client.submit("echo", queue="default")
    canceled = [(await client.cancel((await client.submit("x", queue="nobody")).id)).id for _ in range(3)]
    waiting = await client.submit("x", queue="nobody")
    run = await runs.start(CONFIG)
    await client.wait(young.id)
    swept = await run.event("retention.swept")
    assert (swept["succeeded"], swept["failed"], swept["canceled"]) == (0, 0, 3)
    assert [await client.get(task) for task in canceled] == [None] * 3
    assert (await client.get(young.id)).succeeded
    assert (await client.get(waiting.id)).queued
    assert await run.stop() == 0


async def test_the_backlog_stands_in_the_status(runs, client, gate):
    for _ in range(3):
        await client.submit("gated", gate.path)
    await client.submit("gated", gate.path, delay_ms=3_600_000)
    run = await runs.start(CONFIG)
    arrival = await gate.arrival()
    queue = {}
    while queue.get("demand") != 3 or queue["backlog"] != 2:
        (queue,) = (await status(run))["queues"]
    assert queue["oldest_ms"] >= 0
    arrival.let_go()
    for _ in range(2):
        (await gate.arrival()).let_go()
    assert await run.stop() == 0


async def test_the_queues_of_a_reloaded_configuration_are_sampled(runs, client):
    run = await runs.start('app = "gates:registry"\n')
    await run.ready()
    gone = await client.submit("x", queue="later")
    await client.cancel(gone.id)
    await client.submit("x", queue="later")
    run.config.write_text(CONFIG + "[queues.later]\nhandlers = ['echo']\n")
    run.send(signal.SIGHUP)
    await run.event("reload.finished")
    queues = {}
    while queues.get("later", {}).get("backlog") != 1:
        queues = {queue["name"]: queue for queue in (await status(run))["queues"]}
    assert await run.stop() == 0


class Link:
    """What a caretaker says."""

    def __init__(self):
        self.said = []

    def emit(self, name, **fields):
        self.said.append((name, fields))

    @property
    def names(self):
        return [name for name, _ in self.said]


def carer(dsn, link, retention):
    return Caretaker(lambda: PostgresStore(dsn, min_size=0, max_size=1, migrate=False), link, retention)


async def canceled(client, count):
    for task in await client.submit_many([{"name": "x"}] * count):
        await client.cancel(task.id)


async def test_one_of_two_hosts_has_the_duty(client, database):
    await canceled(client, 2)
    first, second = Link(), Link()
    await carer(database, first, {"canceled": 0.0}).round()
    await canceled(client, 2)
    await carer(database, second, {"canceled": 0.0}).round()
    assert (first.names, second.names) == (["retention.swept"], [])


async def test_a_sweep_goes_on_batch_by_batch_until_nothing_is_left(client, database, monkeypatch):
    monkeypatch.setattr(caretaker, "BATCH", 2)
    await canceled(client, 5)
    link = Link()
    await carer(database, link, {"canceled": 0.0}).round()
    assert link.said == [("retention.swept", {"succeeded": 0, "failed": 0, "canceled": 5})]


async def test_dead_rows_are_vacuumed_once_they_pile_up(client, database, monkeypatch):
    link = Link()
    care = carer(database, link, {})
    await care.round()
    assert link.names == []
    monkeypatch.setattr("cairnq.store.postgres.VACUUM_LEAST_DEAD", 5)
    await canceled(client, 20)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("delete from cairnq_tasks")
        while dead(connection) < 5:  # the server's statistics arrive a moment later
            continue
    await care.round()
    assert link.names == ["database.vacuumed"]


def dead(connection):
    row = connection.execute("select n_dead_tup from pg_stat_all_tables where relname = 'cairnq_tasks'").fetchone()
    return row[0]


async def test_an_outage_is_left_to_others_to_tell_unless_it_lasts_and_then_said_once(client, database, proxy):
    link = Link()
    care = carer(proxy.dsn(database), link, {"canceled": 0.0})
    proxy.refuse()
    await care.round()
    assert link.names == []
    await care.round()
    await care.round()
    assert link.names == ["upkeep.failed"]
    proxy.pass_through()
    await canceled(client, 1)
    await care.round()
    proxy.refuse()
    await care.round()
    assert link.names == ["upkeep.failed", "retention.swept"]
    await care.round()
    assert link.names == ["upkeep.failed", "retention.swept", "upkeep.failed"]


@pytest.mark.parametrize(("retention", "said"), [({}, []), ({"failed": 60.0}, ["upkeep.failed"])])
async def test_a_role_that_may_not_is_worth_a_word_where_retention_is_wished(database, retention, said):
    role = "reader_of_" + database.rpartition("/")[2]
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f'create role "{role}" login')
        connection.execute(f'grant select on all tables in schema public to "{role}"')
        link = Link()
        await carer(database.replace("postgres@", f"{role}@"), link, retention).round()
        connection.execute(f'drop owned by "{role}"')
        connection.execute(f'drop role "{role}"')
    assert link.names == said
    assert all(isinstance(fields["error"], PermissionDenied) for _, fields in link.said)
