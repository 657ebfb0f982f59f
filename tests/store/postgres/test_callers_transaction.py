"""A submit inside the caller's own transaction: part of it, gone with it, seen and notified only after its commit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row, namedtuple_row, tuple_row

from cairnq import AlreadyExists, CairnQ, InvalidArgument, PermissionDenied, QueueFull, SerializationError
from tests.store.conftest import OpenClient
from tests.store.postgres.executors import Session, opened
from tests.store.postgres.sessions import until_blocked
from tests.support.tasks import ME

Transaction = Callable[[str], AbstractAsyncContextManager[Any]]


@asynccontextmanager
async def plain_connection(dsn: str) -> AsyncIterator[Any]:
    """Without autocommit: a transaction begins with its first statement; the block commits it."""
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        yield connection


@asynccontextmanager
async def autocommit_connection(dsn: str) -> AsyncIterator[Any]:
    async with (
        await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection,
        connection.transaction(),
    ):
        yield connection


@asynccontextmanager
async def connection_with_odd_rows(dsn: str) -> AsyncIterator[Any]:
    """Neither its rows nor its statements' preparation are ours to choose."""
    async with (
        await psycopg.AsyncConnection.connect(
            dsn, row_factory=dict_row, prepare_threshold=0, cursor_factory=psycopg.AsyncClientCursor
        ) as connection,
        connection.transaction(),
    ):
        yield connection


@asynccontextmanager
async def named_tuples(dsn: str) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(
        dsn, row_factory=namedtuple_row, prepare_threshold=None
    ) as connection:
        yield connection


@asynccontextmanager
async def session_of_dictionaries(dsn: str) -> AsyncIterator[Any]:
    async with opened(dsn, "dictionaries") as executor, executor.transaction() as session:
        yield session


@asynccontextmanager
async def session_of_tuples(dsn: str) -> AsyncIterator[Any]:
    async with opened(dsn, "tuples") as executor, executor.transaction() as session:
        yield session


TRANSACTIONS: dict[str, Transaction] = {
    "a connection": plain_connection,
    "a connection in autocommit, in a block": autocommit_connection,
    "a connection with rows of its own": connection_with_odd_rows,
    "a connection of named tuples": named_tuples,
    "a session of dictionaries": session_of_dictionaries,
    "a session of tuples": session_of_tuples,
}

SUBMITS: list[dict[str, Any]] = [
    {},
    {"run_at_delay_ms": 60_000},
    {"key": "k"},
    {"key": "l", "conflict": "replace", "metadata": {"é": [1]}, "priority": -9, "correlation_id": "c"},
]


class Undo(Exception):
    pass


@asynccontextmanager
async def undone() -> AsyncIterator[None]:
    """What is inside raises `Undo`."""
    with pytest.raises(Undo):
        yield


@pytest.mark.parametrize("kind", TRANSACTIONS)
async def test_it_is_there_after_the_commit_and_not_before(client: CairnQ, database: str, kind: str) -> None:
    for options in SUBMITS:
        async with TRANSACTIONS[kind](database) as session:
            task = await client.submit("x", [1], session=session, queue="q", **options)
            assert await client.get(task.id) is None
        assert await client.get(task.id) == task


@pytest.mark.parametrize("kind", TRANSACTIONS)
async def test_nobody_claims_it_before_the_commit(client: CairnQ, database: str, kind: str) -> None:
    async with TRANSACTIONS[kind](database) as session:
        task = await client.submit("x", session=session)
        assert await client.store.claim(["default"], ME) == []
    assert [claimed.id for claimed in await client.store.claim(["default"], ME)] == [task.id]


@pytest.mark.parametrize("kind", TRANSACTIONS)
async def test_it_is_gone_with_a_rollback(client: CairnQ, database: str, kind: str) -> None:
    for options in SUBMITS:
        async with undone(), TRANSACTIONS[kind](database) as session:
            await client.submit("x", session=session, **options)
            await client.submit_many([{"name": "x", **options}, {"name": "y"}], session=session)
            raise Undo
        assert await client.stats() == {}
        assert await client.get_by_key("k") is None
    assert not (await client.submit("x", key="k", conflict="reject")).is_terminal


@pytest.mark.parametrize("kind", TRANSACTIONS)
async def test_a_batch_is_part_of_it(client: CairnQ, database: str, kind: str) -> None:
    async with TRANSACTIONS[kind](database) as session:
        tasks = await client.submit_many(
            [{"name": "x", "payload": 1}, {"name": "y", "key": "k"}, {"name": "z", "key": "k"}], session=session
        )
        assert await client.stats() == {}
    assert [task.name for task in tasks] == ["x", "y", "y"]
    assert await client.get_by_key("k") == tasks[1]
    assert (await client.stats())["default"]["queued"] == 2


@pytest.mark.parametrize("kind", TRANSACTIONS)
async def test_what_it_did_before_goes_on(client: CairnQ, database: str, kind: str) -> None:
    """The caller's transaction is as it was: no commit in between, no setting that stays."""
    async with TRANSACTIONS[kind](database) as session:
        connection = session._connection if isinstance(session, Session) else session
        await connection.execute("create temporary table mine (n int) on commit drop")
        await connection.execute("set local work_mem = '7MB'")
        before = (connection.row_factory, connection.prepare_threshold, connection.autocommit)
        await client.submit("x", session=session)
        await client.submit("x", session=session, key="k")
        assert (connection.row_factory, connection.prepare_threshold, connection.autocommit) == before
        cursor = connection.cursor(row_factory=tuple_row)
        await cursor.execute("select count(*), current_setting('work_mem') from mine")
        assert await cursor.fetchone() == (0, "7MB")


async def test_without_a_transaction_autocommit_is_one_of_its_own(client: CairnQ, database: str) -> None:
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
        plain = await client.submit("x", session=connection)
        keyed = await client.submit("x", session=connection, key="k")
        assert await client.get(plain.id) == plain
        assert await client.get(keyed.id) == keyed
        assert (await client.submit("x", session=connection, key="k")).id == keyed.id
        assert connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE


async def test_a_key_is_locked_until_the_commit(client: CairnQ, database: str) -> None:
    async with plain_connection(database) as connection:
        mine = await client.submit("x", session=connection, key="k")
        theirs = asyncio.create_task(client.submit("x", key="k"))
        await until_blocked(database, theirs)
    assert (await theirs).id == mine.id


@pytest.mark.parametrize("isolation", [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE])
async def test_a_key_is_refused_where_the_reread_would_be_blind(
    client: CairnQ, database: str, isolation: psycopg.IsolationLevel
) -> None:
    async with await psycopg.AsyncConnection.connect(database) as connection:
        await connection.set_isolation_level(isolation)
        unkeyed = await client.submit("x", session=connection)
        with pytest.raises(InvalidArgument, match=f"under {isolation.name.replace('_', ' ')}.*READ COMMITTED"):
            await client.submit("x", session=connection, key="k")
        with pytest.raises(InvalidArgument, match="READ COMMITTED"):
            await client.submit_many([{"name": "x", "key": "k"}], session=connection)
    assert await client.get(unkeyed.id) == unkeyed, "the transaction lives on"


async def test_a_savepoint_of_the_callers_takes_it_back(client: CairnQ, database: str) -> None:
    async with plain_connection(database) as connection:
        kept = await client.submit("x", session=connection)
        async with undone(), connection.transaction():
            await client.submit("x", session=connection, key="k")
            raise Undo
        again = await client.submit("x", session=connection, key="k")
    assert {task.id for task in await client.list()} == {kept.id, again.id}


async def test_a_refusal_leaves_the_transaction_usable(client: CairnQ, database: str) -> None:
    await client.submit("x", key="k")
    async with plain_connection(database) as connection:
        for error, options in (
            (AlreadyExists, {"key": "k", "conflict": "reject"}),
            (InvalidArgument, {"max_attempts": 0}),
            (SerializationError, {"metadata": {"x": {1}}}),
        ):
            with pytest.raises(error):
                await client.submit("x", session=connection, **options)
        task = await client.submit("x", session=connection)
    assert await client.get(task.id) == task


async def test_a_workers_own_session_takes_submits(client: CairnQ) -> None:
    """What `complete_in` hands to its `write` is a session like any other."""
    await client.submit("x")
    [task] = await client.store.claim(["default"], ME)

    async def write(session: Any) -> str:
        return (await client.submit("follow-up", session=session, parent_id=task.id, key="once")).id

    done, child = await client.store.complete_in(task.id, ME, write)
    assert done.result == child
    follow_up = await client.get(child)
    assert follow_up is not None
    assert (follow_up.name, follow_up.parent_id) == ("follow-up", task.id)


async def test_it_is_notified_only_after_the_commit(client: CairnQ, database: str) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    ready = asyncio.Event()
    stop = await client.store.listen(
        ["cairnq_queued"], lambda _channel, queue: heard.put_nowait(queue), lambda _delivers: ready.set()
    )
    await ready.wait()
    async with plain_connection(database) as connection:
        await client.submit("x", session=connection, queue="in the transaction")
        await client.submit("x", queue="outside")
        assert await heard.get() == "outside"
        assert heard.empty()
    assert await heard.get() == "in the transaction"
    await stop()


async def test_nothing_waits_inside_a_transaction(open_client: OpenClient, database: str) -> None:
    client = await open_client(max_queue_depth=1, max_queue_wait_ms=60_000)
    await client.submit("x")
    async with plain_connection(database) as connection:
        for submit in (client.submit("x", session=connection), client.submit_many([{"name": "x"}], session=connection)):
            with pytest.raises(QueueFull) as full:
                await submit
            assert full.value.waited_ms < 30_000


async def test_a_deadlock_of_the_callers_is_passed_on(client: CairnQ, database: str) -> None:
    """Two transactions that take two keys in turn: the server ends one, and its caller must roll back."""
    async with (
        await psycopg.AsyncConnection.connect(database) as one,
        await psycopg.AsyncConnection.connect(database) as other,
    ):
        await client.submit("x", session=one, key="a")
        await client.submit("x", session=other, key="b")
        crossing = [
            asyncio.create_task(client.submit("x", session=one, key="b")),
            asyncio.create_task(client.submit("x", session=other, key="a")),
        ]
        done, _ = await asyncio.wait(crossing, return_when=asyncio.FIRST_EXCEPTION)
        [loser] = [task for task in done if task.exception()]
        assert isinstance(loser.exception(), psycopg.errors.DeadlockDetected)
        await (one if loser is crossing[0] else other).rollback()
        [winner] = [task for task in crossing if task is not loser]
        assert (await winner).queued


async def test_a_connection_without_rights_is_told_which(client: CairnQ, database: str) -> None:
    async with await psycopg.AsyncConnection.connect(database) as connection:
        await connection.execute("create role nobody_here")
        await connection.execute("set local role nobody_here")
        with pytest.raises(PermissionDenied, match="cairnq_tasks"):
            await client.submit("x", session=connection)
        await connection.rollback()


@pytest.mark.parametrize("session", [object(), 7, "postgresql://host/db", psycopg.AsyncConnection])
@pytest.mark.parametrize("key", [None, "k"])
async def test_what_is_no_session_is_refused(client: CairnQ, session: Any, key: str | None) -> None:
    with pytest.raises(InvalidArgument, match=r"psycopg AsyncConnection or an object with query\(text, values\)"):
        await client.submit("x", session=session, key=key)
    with pytest.raises(InvalidArgument, match="session must be"):
        await client.submit_many([{"name": "x"}], session=session)
    assert await client.stats() == {}


async def test_a_blocking_connection_is_refused_by_name(client: CairnQ, database: str) -> None:
    with (
        psycopg.connect(database) as connection,
        pytest.raises(InvalidArgument, match="AsyncConnection.*not Connection .cairnq.sync.CairnQ takes one"),
    ):
        await client.submit("x", session=connection)


async def test_a_closed_connection_is_no_silence(client: CairnQ, database: str) -> None:
    connection = await psycopg.AsyncConnection.connect(database)
    await connection.close()
    with pytest.raises(Exception, match="closed"):
        await client.submit("x", session=connection)
    assert await client.stats() == {}
