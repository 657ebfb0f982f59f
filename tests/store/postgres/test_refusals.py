"""What a server refuses is named at once, in its own words, and without a password: no outage, no retry, no wait."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from cairnq import ConnectError, DatabaseReadOnly, DatabaseUnavailable, PermissionDenied, PostgresStore
from tests.support.cluster import Cluster, name_of
from tests.support.tasks import ME

SECRET = "hush%40ush"
AT_ONCE_S = 20.0
"""Far below the ten seconds that a pool would have waited."""


@pytest.fixture
def guarded(own_server: Cluster) -> str:
    """The DSN of a database whose role `keyed` needs a password; `closed` is another, which nobody may connect to."""
    name = own_server.create_database()
    with own_server.connect(name) as connection:
        for statement in (
            "create role keyed login password 'right'",
            "create role barred nologin",
            "create role narrow login connection limit 0",
            "create database closed",
            "revoke connect on database closed from public",
        ):
            connection.execute(statement.encode())
        rules = own_server.data / "pg_hba.conf"
        rules.write_text("host all keyed all scram-sha-256\nhost all exiled all reject\n" + rules.read_text())
        connection.execute("select pg_reload_conf()")
        connection.execute("create role exiled login")
    return own_server.dsn(name)


REFUSALS = {
    f"keyed:{SECRET}@": 'password authentication failed for user "keyed"',
    "keyed@": "no password supplied",
    f"nobody:{SECRET}@": 'role "nobody" does not exist',
    f"barred:{SECRET}@": 'role "barred" is not permitted to log in',
    f"exiled:{SECRET}@": "pg_hba.conf rejects connection",
}


@pytest.mark.parametrize("role", REFUSALS)
async def test_a_role_that_is_refused_is_told_why(guarded: str, role: str) -> None:
    refused = await refusal(guarded.replace("postgres@", role))
    assert REFUSALS[role] in str(refused)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("?sslmode=require", "server does not support SSL"),
        ("?options=-c%20work_mem%3Dplenty", 'invalid value for parameter "work_mem"'),
        ("?options=-c%20no_such%3D1", 'unrecognized configuration parameter "no_such"'),
        ("?client_encoding=klingon", 'invalid value for parameter "client_encoding"'),
    ],
)
async def test_an_option_that_is_refused_is_named(database: str, options: str, says: str) -> None:
    assert says in str(await refusal(database + options))


async def test_a_database_that_is_closed_to_the_role_is_a_missing_right(guarded: str) -> None:
    refused = await refusal(guarded.replace(name_of(guarded), "closed").replace("postgres@", "keyed:right@"))
    assert isinstance(refused, PermissionDenied)
    assert 'permission denied for database "closed"' in str(refused)


async def test_too_many_connections_pass_like_an_outage(guarded: str) -> None:
    refused = await failure(guarded.replace("postgres@", "narrow@"))
    assert isinstance(refused, DatabaseUnavailable)
    assert 'too many connections for role "narrow"' in str(refused)


async def test_a_reserved_schema_cannot_be_made(empty_database: str) -> None:
    store = PostgresStore(empty_database, schema="pg_mine")
    with pytest.raises(ConnectError, match='unacceptable schema name "pg_mine"'):
        await store.connect()
    await store.close()


async def test_a_database_opened_read_only_is_named_at_the_first_write(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"alter database {name_of(database)} set default_transaction_read_only = on")
    store = PostgresStore(database)
    await store.connect()
    assert await store.stats() == {}
    for write in (store.submit("x"), store.submit("x", key="k"), store.claim(["default"], ME), store.purge()):
        with pytest.raises(DatabaseReadOnly, match="in recovery or read-only"):
            await write
    await store.close()


async def test_a_right_that_is_missing_is_named_by_each_write(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create role looker login")
        connection.execute("grant select on all tables in schema public to looker")
    store = PostgresStore(database.replace("postgres@", "looker@"), migrate=False)
    assert await store.stats() == {}
    for write in (store.submit("x"), store.submit("x", key="k"), store.claim(["default"], ME), store.cancel("task_x")):
        with pytest.raises(PermissionDenied, match="permission denied for table cairnq_"):
            await write
    await store.close()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("drop owned by looker")
        connection.execute("drop role looker")


async def refusal(dsn: str) -> ConnectError:
    """What connecting raises: named, no outage, at once, and without the password anywhere."""
    refused = await failure(dsn)
    assert isinstance(refused, ConnectError)
    assert not isinstance(refused, DatabaseUnavailable)
    return refused


async def failure(dsn: str) -> BaseException:
    store = PostgresStore(dsn)
    async with asyncio.timeout(AT_ONCE_S):
        with pytest.raises(ConnectError) as refused:
            await store.connect()
        await store.close()
    told: BaseException | None = refused.value
    while told is not None:
        assert "ush" not in str(told)
        told = told.__cause__ or told.__context__
    return refused.value
