"""The statements behind `cairnq check` and `cairnq doctor`."""

from __future__ import annotations

import psycopg
import pytest

from cairnq.db.statements import Statements
from cairnq.store.installing import OTHER_SDKS_LEDGER
from cairnq_supervisor.pure.settings import Settings
from cairnq_supervisor.roles.survey import survey


def settings(dsn, **more):
    return Settings(app="", queues=(), database=dsn, **more)


@pytest.mark.statement("survey/server", "survey/rights", "survey/snapshots", "survey/tables", "survey/oldest_finished")
async def test_an_installed_database_is_surveyed(database):
    found = await survey(settings(database))
    assert found.schema == "public"
    assert not found.in_recovery
    assert not found.pooled
    assert found.version >= 140_000
    assert found.most_connections == 200
    assert found.open_connections >= 1
    assert set(found.ledger) == {*OTHER_SDKS_LEDGER, *found.ours}
    assert found.unknown == ()
    assert (found.rights.use, found.rights.create, found.rights.owns, found.rights.missing) == (True, True, True, [])
    assert found.table is not None
    assert found.table.wakes
    assert found.table.oldest_finished_s is None


async def test_a_schema_that_is_not_there_has_no_rights_to_speak_of(database):
    found = await survey(settings(database, schema="Nowhere"))
    assert (found.rights.use, found.rights.create, found.rights.owns) == (None, None, None)
    assert found.ledger == ()
    assert found.table is None


async def test_the_limits_of_the_database_and_the_role_count(database):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f'alter database "{connection.info.dbname}" connection limit 7')
    assert (await survey(settings(database))).most_connections == 7


@pytest.mark.parametrize("kind", ["session", "prepared transaction"])
async def test_who_holds_back_vacuum_is_named(database, kind):
    statement = Statements("postgres", "public").get("survey/snapshots")
    text = statement.text.replace("$1", "%s")
    with psycopg.connect(database, application_name="forgotten") as holder, psycopg.connect(database) as looker:
        if kind == "prepared transaction":
            if looker.execute("show max_prepared_transactions").fetchone() == ("0",):
                pytest.skip("this server allows no prepared transactions")
            holder.tpc_begin("forgotten")
            holder.execute("insert into cairnq_meta values ('a', 'b')")
            holder.tpc_prepare()
        else:
            holder.execute("set transaction isolation level repeatable read")
            holder.execute("select from cairnq_tasks")
        found = [row for row in looker.execute(text, (0,)).fetchall() if "forgotten" in row[1]]
        assert [row[0] for row in found] == [kind]
        assert looker.execute(text, (3600,)).fetchall() == []
        if kind == "prepared transaction":
            holder.tpc_rollback()


async def test_the_oldest_finished_task_dates_the_retention(client, database):
    task = await client.submit("a")
    await client.cancel(task.id)
    with psycopg.connect(database) as connection:
        connection.execute("update cairnq_tasks set completed_at_ms = completed_at_ms - 7200000")
    found = await survey(settings(database))
    assert found.table is not None
    assert found.table.oldest_finished_s is not None
    assert 7200 <= found.table.oldest_finished_s < 7300
