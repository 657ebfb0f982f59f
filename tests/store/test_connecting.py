"""The connect-time checks: which schema, migrations once, protocol version, and what stands in the way of each."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg
import pytest

from cairnq import (
    CairnQ,
    ConnectError,
    DatabaseReadOnly,
    DatabaseUnavailable,
    InvalidDsn,
    PermissionDenied,
    PostgresStore,
    ProtocolVersionMismatch,
    SchemaMismatch,
)
from cairnq.store.installing import OTHER_SDKS_LEDGER
from tests.support.cluster import Cluster, name_of
from tests.support.proxy import Proxy
from tests.support.tasks import ME

pytestmark = pytest.mark.postgres


async def connect(dsn: str, *, schema: str | None = None, migrate: bool = True) -> str:
    """Connects once; returns the schema found."""
    store = PostgresStore(dsn, schema=schema, migrate=migrate)
    try:
        return (await store.connect()).schema
    finally:
        await store.close()


def execute(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def ask(dsn: str, statement: str) -> list[str]:
    with psycopg.connect(dsn) as connection:
        return [str(row[0]) for row in connection.execute(statement.encode())]


# --- which schema ---------------------------------------------------------------------------------------


async def test_a_configured_schema_is_made_and_quoted(empty_database: str) -> None:
    for schema in ("cairnq", "MySchema", 'odd "name"; --', "схема"):
        assert await connect(empty_database, schema=schema) == schema
        store = PostgresStore(empty_database, schema=schema)
        await store.submit("x", schema)
        assert [task.payload for task in await store.claim(["default"], ME)] == [schema]
        await store.close()
    made = ask(empty_database, "select schemaname from pg_tables where tablename = 'cairnq_tasks' order by 1")
    assert sorted(made) == sorted(["cairnq", "MySchema", 'odd "name"; --', "схема"])


async def test_a_second_installation_is_not_made_by_accident(empty_database: str) -> None:
    await connect(empty_database, schema="cairnq")
    with pytest.raises(SchemaMismatch) as refused:
        await connect(empty_database)
    assert "'public'" in str(refused.value)
    assert "schema='cairnq'" in str(refused.value)
    assert ask(empty_database, "select count(*) from pg_tables where schemaname = 'public'") == ["0"]
    assert await connect(empty_database, schema="public") == "public"
    assert await connect(empty_database) == "public"


async def test_a_search_path_in_the_database_decides_where_none_is_configured(empty_database: str) -> None:
    execute(
        empty_database,
        "create schema app",
        f"alter database {name_of(empty_database)} set search_path = app",
    )
    assert await connect(empty_database) == "app"


async def test_no_current_schema_says_what_is_wrong(empty_database: str) -> None:
    execute(empty_database, f"alter database {name_of(empty_database)} set search_path = nowhere")
    with pytest.raises(SchemaMismatch, match="no current schema.*search_path"):
        await connect(empty_database)


# --- migrations -----------------------------------------------------------------------------------------


async def test_a_database_of_ours_carries_the_other_sdks_ledger(database: str) -> None:
    names = ask(database, "select name from cairnq_migrations order by name")
    assert [name for name in names if not name.startswith("lean/")] == list(OTHER_SDKS_LEDGER)
    assert ask(database, "select value from cairnq_meta order by key") == ["1", "10"]


@pytest.mark.fault(row=22)
async def test_cold_starts_at_once_install_once(empty_database: str) -> None:
    stores = [PostgresStore(empty_database, schema="cairnq") for _ in range(8)]
    found = await asyncio.gather(*(store.connect() for store in stores))
    await asyncio.gather(*(store.close() for store in stores))
    assert {installation.schema for installation in found} == {"cairnq"}
    assert len(ask(empty_database, "select distinct xmin::text from cairnq.cairnq_migrations")) == 1, "one transaction"


@pytest.mark.fault(row=22)
async def test_a_current_schema_is_not_touched(database: str) -> None:
    """No DDL, so that a start does not wait behind a dump, nor everybody else behind the start."""
    async with await psycopg.AsyncConnection.connect(database) as dump:
        await dump.execute("lock table cairnq_tasks, cairnq_migrations, cairnq_task_keys in access share mode")
        assert await connect(database) == "public"


@pytest.mark.slow
@pytest.mark.fault(row=22)
async def test_a_migration_that_cannot_have_its_lock_gives_up_and_says_so(database: str) -> None:
    execute(database, "delete from cairnq_migrations where name = 'lean/0002_lean_indexes.sql'")
    async with await psycopg.AsyncConnection.connect(database) as dump:
        await dump.execute("lock table cairnq_tasks in access exclusive mode")
        with pytest.raises(DatabaseUnavailable, match="waited 5s for a lock"):
            await connect(database)
    assert await connect(database) == "public"


async def test_a_check_without_the_right_to_migrate_names_what_is_missing(empty_database: str, database: str) -> None:
    with pytest.raises(SchemaMismatch, match="no cairnq is installed there.*migrate is off"):
        await connect(empty_database, migrate=False)
    assert ask(empty_database, "select count(*) from pg_tables where schemaname = 'public'") == ["0"]
    execute(database, "delete from cairnq_migrations where name = 'lean/0003_notify.sql'")
    with pytest.raises(SchemaMismatch, match="lean/0003_notify.sql"):
        await connect(database, migrate=False)


@pytest.mark.slow
async def test_a_ledger_that_stops_too_early_is_refused_after_a_while(database: str) -> None:
    execute(database, "delete from cairnq_migrations where name > '0004' or name like 'lean%'")
    with pytest.raises(SchemaMismatch, match="stops at migration '0003_notify.sql'.*upgrade the SDK"):
        await connect(database)


async def test_a_ledger_that_is_being_completed_is_waited_for(database: str) -> None:
    execute(
        database,
        "create table withheld as select * from cairnq_migrations where name > '0004' or name like 'lean%'",
        "delete from cairnq_migrations where name > '0004' or name like 'lean%'",
    )
    async with await psycopg.AsyncConnection.connect(database) as other_sdk:
        await other_sdk.execute("lock table cairnq_migrations in exclusive mode")
        connecting = asyncio.create_task(connect(database))
        await other_sdk.execute("insert into cairnq_migrations select * from withheld")
    assert await connecting == "public"


async def test_an_unknown_name_in_the_ledger_is_no_reason_to_refuse(database: str) -> None:
    execute(database, "insert into cairnq_migrations values ('0042_from_the_future.sql', 1)")
    assert await connect(database) == "public"


async def test_another_major_version_of_the_protocol_is_refused(database: str) -> None:
    execute(database, "update cairnq_meta set value = '2' where key = 'protocol_version'")
    with pytest.raises(ProtocolVersionMismatch) as refused:
        await connect(database)
    assert (refused.value.found, refused.value.expected) == ("2", 1)
    execute(database, "update cairnq_meta set value = '1.7' where key = 'protocol_version'")
    assert await connect(database) == "public"


# --- what stands in the way -----------------------------------------------------------------------------


@pytest.mark.parametrize("dsn", ["postgresql://u:secret@[::1/x", "host=", "nonsense", "", "   ", "port=x=y"])
async def test_a_dsn_that_does_not_parse_is_refused_without_its_password(dsn: str) -> None:
    with pytest.raises(ConnectError) as refused:
        await connect(dsn)
    assert "secret" not in str(refused.value)
    if "=" not in dsn:
        assert isinstance(refused.value, InvalidDsn)


@pytest.mark.parametrize(
    ("grant", "schema"),
    [("grant usage on schema public to stranger", None), ("grant connect on database {} to stranger", "new")],
)
async def test_a_role_without_rights_is_told_which(
    server: Cluster, empty_database: str, grant: str, schema: str | None
) -> None:
    name = name_of(empty_database)
    execute(
        empty_database,
        "drop role if exists stranger",
        "create role stranger login",
        "revoke create on schema public from public",
        grant.format(name),
    )
    with pytest.raises(PermissionDenied, match="permission denied for (schema public|database)"):
        await connect(empty_database.replace("postgres@", "stranger@"), schema=schema)
    execute(empty_database, "drop owned by stranger", "drop role stranger")


async def test_a_role_without_ddl_works_on_what_is_there(database: str) -> None:
    execute(
        database,
        "drop role if exists clerk",
        "create role clerk login",
        "grant select, insert, update, delete on all tables in schema public to clerk",
    )
    store = PostgresStore(database.replace("postgres@", "clerk@"), migrate=False)
    task = await store.submit("x", key="k")
    [running] = await store.claim(["default"], ME)
    assert (await store.complete(running.id, ME, 1)).id == task.id
    assert await store.purge() == [task.id]
    await store.close()
    execute(database, "drop owned by clerk", "drop role clerk")


async def test_a_database_in_recovery_is_refused_by_name(own_server: Cluster) -> None:
    name = own_server.create_database()
    own_server.stop()
    Path(own_server.data, "standby.signal").touch()
    own_server.start()
    with pytest.raises(DatabaseReadOnly, match="in recovery.*target_session_attrs=read-write"):
        await connect(own_server.dsn(name))


async def test_no_server_is_an_outage_and_no_such_database_is_not(database: str, proxy: Proxy) -> None:
    proxy.refuse()
    with pytest.raises(DatabaseUnavailable, match="refused"):
        await connect(proxy.dsn(database))
    with pytest.raises(ConnectError, match=r'"none_such" does not exist') as refused:
        await connect(database.replace(name_of(database), "none_such"))
    assert not isinstance(refused.value, DatabaseUnavailable)


async def test_a_client_that_was_never_connected_checks_at_its_first_call(empty_database: str) -> None:
    client = CairnQ.postgres(empty_database, schema="cairnq")
    task = await client.submit("x")
    assert await client.get(task.id) == task
    await client.close()
