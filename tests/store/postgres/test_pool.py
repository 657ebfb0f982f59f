"""The connections: made at the first use and in each process anew, replaced when they end, prepared once."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

import cairnq
import cairnq.sync
from cairnq import (
    AlreadyExists,
    CairnQ,
    ConnectError,
    DatabaseUnavailable,
    Held,
    PostgresStore,
    SchemaMismatch,
    StoreClosed,
)
from tests.store.postgres.sessions import sessions, terminate, until_sessions
from tests.support.proxy import Direction, Proxy
from tests.support.tasks import ME, claimed


@pytest.fixture
async def direct(database: str) -> Any:
    """A connected store with a pool of one, not through the pooler."""
    store = PostgresStore(database, max_size=1)
    await store.connect()
    yield store
    await store.close()


# --- made lazily ----------------------------------------------------------------------------------------


async def test_nothing_connects_before_it_must(database: str) -> None:
    client = CairnQ.postgres(database, min_size=3)
    assert sessions(database) == []
    await client.connect()
    await client.submit("x")
    await until_sessions(database, "true", lambda pids: len(pids) >= 3)
    await client.close()
    await until_sessions(database, "true", lambda pids: not pids)


async def test_an_installation_handed_over_skips_the_checks(database: str, direct: PostgresStore) -> None:
    handed = PostgresStore(database, installation=direct.installation)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("update cairnq_meta set value = '2' where key = 'protocol_version'")
        assert (await handed.submit("x")).queued
        connection.execute("update cairnq_meta set value = '1' where key = 'protocol_version'")
    await handed.close()


async def test_no_more_connections_than_asked_for(database: str) -> None:
    async with CairnQ.postgres(database, max_size=3) as client:
        await asyncio.gather(*(client.submit("x") for _ in range(100)))
        assert 1 <= len(sessions(database)) <= 3
        assert (await client.stats())["default"]["queued"] == 100


async def test_who_asks_for_one_thing_at_a_time_has_one_connection(database: str) -> None:
    store = PostgresStore(database)
    await store.connect()
    for _ in range(5):
        await store.submit("x")
    attempts = store._executor._pool.get_stats()["connections_num"]
    await store.close()
    assert attempts == 1


async def test_the_server_knows_whose_they_are(database: str) -> None:
    async with CairnQ.postgres(database + "?application_name=shop") as client:
        await client.submit("x")
        with psycopg.connect(database) as looking:
            [(count,)] = looking.execute("select count(*) from pg_stat_activity where application_name = 'shop'")
    assert count >= 1


async def test_a_sibling_has_one_connection_of_its_own(database: str, direct: PostgresStore) -> None:
    await direct.stats()
    mine = sessions(database)
    sibling = direct.sibling()
    assert sibling is not None
    await asyncio.gather(*(sibling.stats() for _ in range(10)))
    theirs = sessions(database)
    assert set(mine) < set(theirs)
    assert len(theirs) == len(mine) + 1
    await sibling.close()
    assert await direct.stats() == {}
    await until_sessions(database, "true", lambda pids: pids == mine)


async def test_a_second_event_loop_gets_its_own(database: str) -> None:
    store = PostgresStore(database)
    for number in range(3):
        count = await asyncio.to_thread(asyncio.run, count_and_submit(store))
        assert count == number
    await store.close()


async def test_an_event_loop_ends_though_the_store_was_left_open(database: str) -> None:
    """The pool may be growing at that moment, and its worker swallows the cancellation that ends it."""
    store = PostgresStore(database)
    for _ in range(25):
        await asyncio.to_thread(asyncio.run, count_and_submit(store))
    await store.close()


async def count_and_submit(store: PostgresStore) -> int:
    counts = await store.stats()
    await store.submit("x")
    return counts["default"]["queued"] if counts else 0


# --- closed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [CairnQ, cairnq.sync.CairnQ])
async def test_a_client_that_cannot_be_entered_leaves_no_session(kind: Any, empty_database: str) -> None:
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute("create schema elsewhere create table cairnq_tasks (id text)")
    client = kind.postgres(empty_database)
    entering = client.__aenter__() if kind is CairnQ else asyncio.to_thread(client.__enter__)
    with pytest.raises(SchemaMismatch):
        await entering
    await until_sessions(empty_database, "true", lambda pids: not pids)


async def test_a_closed_client_refuses_by_name_and_connects_no_more(database: str) -> None:
    never_used, used = CairnQ.postgres(database), CairnQ.postgres(database)
    await used.submit("x")
    for client in (never_used, used):
        await client.close()
        await client.close()
        for call in (
            client.submit("y"),
            client.get("task_x"),
            client.connect(),
            client.wait("task_x"),
            client.watch(print),
            client.store.claim(["default"], ME),
            client.store.settle_many(ME, []),
            client.store.release_many(ME, [Held("task_x", 1)]),
        ):
            try:
                assert not await call, "nothing was asked"
            except StoreClosed as closed:
                assert "closed" in str(closed)
    await until_sessions(database, "true", lambda pids: not pids)


# --- replaced -------------------------------------------------------------------------------------------


async def test_an_idle_connection_that_was_killed_is_replaced_unnoticed(database: str) -> None:
    async with CairnQ.postgres(database, min_size=4, max_size=4) as client:
        for _ in range(10):
            pids = await until_sessions(database, "true", lambda pids: len(pids) == 4)
            terminate(database, pids)
            assert len(await asyncio.gather(*(client.submit("x") for _ in range(8)))) == 8
        assert (await client.stats())["default"]["queued"] == 80


async def test_a_connection_killed_in_mid_statement_is_an_outage_and_the_next_call_works(
    database: str, direct: PostgresStore
) -> None:
    task = await claimed(direct)
    async with await psycopg.AsyncConnection.connect(database) as blocking:
        await blocking.execute("select from cairnq_tasks where id = %s for update", [task.id])
        completing = asyncio.create_task(direct.complete(task.id, ME, "r"))
        terminate(database, await until_sessions(database, "wait_event_type = 'Lock'", bool))
        with pytest.raises(DatabaseUnavailable, match="cannot be reached"):
            await completing
    assert (await direct.complete(task.id, ME, "r")).result == "r"


async def test_an_outage_that_ends_while_a_call_waits_is_survived_by_it(database: str, proxy: Proxy) -> None:
    """A restart of the server is no error for whoever can wait a moment."""
    async with CairnQ.postgres(proxy.dsn(database), min_size=1, max_size=2) as client:
        await client.submit("x")
        for _ in range(2):
            proxy.refuse()
            calls = [asyncio.create_task(client.submit("x")) for _ in range(3)]
            await asyncio.wait(calls, timeout=2.5)  # longer than the pool's first attempts
            proxy.pass_through()
            done, waiting = await asyncio.wait(calls, timeout=60)
            assert not waiting
            assert {type(call.exception()) for call in done} <= {type(None)}


async def test_an_outage_that_stays_is_named(database: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cairnq.db.pool, "CHECKOUT_TIMEOUT_S", 0.5)
    async with CairnQ.postgres(proxy.dsn(database)) as client:
        await client.submit("x")
        proxy.refuse()
        with pytest.raises(DatabaseUnavailable, match="cannot be reached: .*Connection refused"):
            await client.submit("x")
        proxy.pass_through()
        assert (await client.submit("x")).queued


async def test_a_role_that_may_not_come_in_any_more_is_no_outage(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create role visitor login superuser")
        async with CairnQ.postgres(database.replace("postgres@", "visitor@"), min_size=0) as client:
            await client.submit("x")
            connection.execute("alter role visitor nologin")
            terminate(database, sessions(database))
            with pytest.raises(ConnectError, match='"visitor" is not permitted to log in') as refused:
                await client.submit("x")
        assert not isinstance(refused.value, DatabaseUnavailable)
        connection.execute("drop role visitor")


async def test_a_server_that_restarts_is_found_again(own_server: Any) -> None:
    database = own_server.dsn(own_server.create_database())
    async with CairnQ.postgres(database) as client:
        await client.submit("x")
        own_server.restart()
        assert (await client.submit("x")).queued


async def test_a_cancelled_call_leaves_its_connection_usable(database: str, direct: PostgresStore) -> None:
    task = await claimed(direct)
    async with await psycopg.AsyncConnection.connect(database) as blocking:
        await blocking.execute("select from cairnq_tasks where id = %s for update", [task.id])
        completing = asyncio.create_task(direct.complete(task.id, ME, "r"))
        await until_sessions(database, "wait_event_type = 'Lock'", bool)
        completing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await completing
        assert await direct.get(task.id) == task
    assert (await direct.complete(task.id, ME, "r")).result == "r"


@pytest.mark.parametrize("prepared_before", [False, True])
async def test_a_cancelled_submit_leaves_its_connection_usable(
    database: str, direct: PostgresStore, prepared_before: bool
) -> None:
    if prepared_before:
        await direct.submit("x")
    async with await psycopg.AsyncConnection.connect(database) as blocking:
        await blocking.execute("lock table cairnq_tasks in access exclusive mode")
        submitting = asyncio.create_task(direct.submit("cancelled"))
        await until_sessions(database, "wait_event_type = 'Lock'", bool)
        submitting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await submitting
    assert (await direct.submit("x")).queued
    assert {task.name for task in await direct.list()} == {"x"}


async def test_silence_of_the_server_does_not_hold_a_cancelled_call(database: str, proxy: Proxy) -> None:
    async with CairnQ.postgres(proxy.dsn(database), max_size=1) as client:
        await client.submit("x")
        proxy.black_hole(Direction.REPLIES)
        calling = asyncio.create_task(client.submit("x"))
        await asyncio.wait({calling}, timeout=0.2)
        calling.cancel()
        proxy.pass_through()
        await asyncio.wait({calling})
        assert (await client.submit("x")).queued


# --- prepared -------------------------------------------------------------------------------------------

PREPARED = "select count(*), count(distinct statement) from pg_prepared_statements"


async def prepared(store: PostgresStore) -> tuple[int, int]:
    async with store._executor.autocommit() as session:
        [row] = await session.rows(PREPARED, [])
        return row[0], row[1]


async def work(store: PostgresStore, size: int) -> None:
    """One of each statement, with arguments of every size."""
    tasks = await store.submit_many([{"name": "x", "priority": number - 2} for number in range(size)])
    await store.submit("x", {"n": 2**size}, priority=size, key=f"key {size}", run_at_delay_ms=size)
    await store.claim(["default"], ME, lease_ms=1000 * size, limit=size)
    await store.heartbeat_batch([task.id for task in tasks], ME, 1000 * size)
    await store.release_many(ME, [Held(task.id, size) for task in tasks])
    await store.list(limit=size, offset=size)
    await store.get_by_key("k" * size)


async def test_a_statement_is_prepared_once_whatever_its_arguments(database: str, direct: PostgresStore) -> None:
    await work(direct, 1)
    count, texts = await prepared(direct)
    assert count == texts + 1 > 5, "the insert of many rows runs alone and in a keyed submit's transaction"
    for size in (2, 3, 40, 300):
        await work(direct, size)
    after, after_texts = await prepared(direct)
    assert after == after_texts + 1
    assert after - count <= 2, "a statement of many rows, where one row had its own"


async def test_what_a_session_has_forgotten_is_prepared_again(database: str) -> None:
    async def rolled_back(store: PostgresStore) -> None:
        with pytest.raises(AlreadyExists):
            await store.submit("x", key="k", conflict="reject")

    async def deallocated(store: PostgresStore) -> None:
        async with store._executor.autocommit() as session:
            await session.execute("deallocate all")

    store = PostgresStore(database, max_size=1)
    await store.submit("x", key="k")
    for forget in (rolled_back, deallocated, rolled_back):
        await store.submit("x", 1)
        await forget(store)
        tasks = [await store.submit("x", 2), *await store.submit_many([{"name": "x"}, {"name": "y"}])]
        assert [await store.get(task.id) for task in tasks] == tasks
    await store.close()


async def test_behind_a_pooler_nothing_is_prepared(database: str) -> None:
    store = PostgresStore(database, max_size=1, listen_database=database)
    for size in range(1, 10):
        await work(store, size)
    assert await prepared(store) == (0, 0)
    await store.close()


# --- a fork ---------------------------------------------------------------------------------------------

FORKS = """
import asyncio, os, sys, warnings
from cairnq import CairnQ

client = CairnQ.postgres(sys.argv[1], min_size=2, max_size=2)

async def backends():
    async def one():
        async with client.store._executor.autocommit() as session:
            return (await session.rows("select pg_backend_pid(), pg_sleep(0.05)", []))[0][0]  # sleep: holds its session
    return sorted(set(await asyncio.gather(one(), one())))

async def main():
    await client.submit("before the fork")
    mine = await backends()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os._exit(in_child(mine))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, "the child failed"
    assert await backends() == mine, "the parent's connections are gone"
    await client.submit("after the child's end")
    await client.close()

def in_child(parents):
    import traceback
    try:
        asyncio.run(work_in_child(parents))
        return 0
    except BaseException:
        traceback.print_exc()
        return 1

async def work_in_child(parents):
    await client.submit("in the child")
    assert not set(await backends()) & set(parents), "a connection is shared"
    import gc; gc.collect()
    await client.close()

asyncio.run(main())
"""


async def test_a_forked_child_makes_its_own_and_leaves_its_parents_alive(direct: PostgresStore, database: str) -> None:
    root = Path(cairnq.__file__).parent.parent
    forked = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", FORKS, database],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (forked.returncode, forked.stderr) == (0, "")
    names = [task.name for task in await direct.list()]
    assert names == ["after the child's end", "in the child", "before the fork"]
