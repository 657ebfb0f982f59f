"""One LISTEN connection that proves itself: replaced when it ends, open about silence, gone when nobody needs it."""

from __future__ import annotations

import asyncio

import pytest

from cairnq import CairnQ, InvalidDsn, PostgresStore, StoreClosed
from cairnq.db import listen
from cairnq.store import wait
from tests.store.conftest import OpenClient
from tests.store.postgres.sessions import LISTENING, sessions, terminate, until_sessions
from tests.store.test_waiting import NEVER
from tests.support.proxy import Direction, Proxy
from tests.support.tasks import ME


class Heard:
    """What a subscription heard, and whether it delivers."""

    def __init__(self) -> None:
        self.notified: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self.states: list[bool] = []
        self._changed = asyncio.Event()

    def on_notify(self, channel: str, payload: str) -> None:
        self.notified.put_nowait((channel, payload))

    def on_state(self, delivers: bool) -> None:
        self.states.append(delivers)
        self._changed.set()

    async def until(self, *states: bool) -> None:
        """Returns when it has said exactly this, from its beginning."""
        while self.states != list(states):
            self._changed.clear()
            await self._changed.wait()


@pytest.fixture
def heard() -> Heard:
    return Heard()


async def test_it_says_true_once_it_has_proved_itself(store: PostgresStore, database: str, heard: Heard) -> None:
    stop = await store.listen(["cairnq_queued", "cairnq_done"], heard.on_notify, heard.on_state)
    await heard.until(True)
    task = await store.submit("x", queue="é ✓ 'q'")
    await store.cancel(task.id)
    assert await heard.notified.get() == ("cairnq_queued", "é ✓ 'q'")
    assert await heard.notified.get() == ("cairnq_done", task.id)
    assert len(sessions(database, LISTENING)) == 1
    await stop()
    assert heard.states == [True, False]
    assert heard.notified.empty(), "its own probes are nobody's business"


async def test_one_that_was_killed_listens_again(store: PostgresStore, database: str, heard: Heard) -> None:
    stop = await store.listen(["cairnq_done"], heard.on_notify, heard.on_state)
    await heard.until(True)
    terminate(database, sessions(database, LISTENING))
    await heard.until(True, False, True)
    task = await store.submit("x")
    await store.cancel(task.id)
    assert await heard.notified.get() == ("cairnq_done", task.id)
    await stop()


async def test_a_stop_leaves_no_session_whenever_it_comes(store: PostgresStore, database: str, heard: Heard) -> None:
    for turns in range(30):
        stop = await store.listen(["cairnq_done"], heard.on_notify, heard.on_state)
        for _ in range(turns):
            await asyncio.sleep(0)
        await stop()
        await stop()
    await until_sessions(database, LISTENING, lambda pids: not pids)


async def test_a_closed_store_ends_its_subscriptions(database: str, heard: Heard) -> None:
    store = PostgresStore(database)
    await store.connect()
    stop = await store.listen(["cairnq_done"], heard.on_notify, heard.on_state)
    await heard.until(True)
    await store.close()
    assert heard.states == [True, False]
    await stop()
    await until_sessions(database, "true", lambda pids: not pids)
    with pytest.raises(StoreClosed):
        await store.listen(["cairnq_done"], heard.on_notify, heard.on_state)


async def test_it_outlives_an_outage(database: str, proxy: Proxy, heard: Heard) -> None:
    store = PostgresStore(proxy.dsn(database))
    await store.connect()
    proxy.refuse()
    stop = await store.listen(["cairnq_done"], heard.on_notify, heard.on_state)
    proxy.pass_through()
    await heard.until(True)
    proxy.reset()
    await heard.until(True, False, True)
    await stop()
    await store.close()


@pytest.mark.fault(row=20)
async def test_silence_is_found_by_the_self_test(
    database: str, proxy: Proxy, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Accepted, connected, and nothing arrives: only the notification to itself can tell."""
    monkeypatch.setattr(listen, "SELF_TEST_INTERVAL_S", 0.02)
    monkeypatch.setattr(listen, "SELF_TEST_TIMEOUT_S", 0.5)
    direct = PostgresStore(database)
    store = PostgresStore(database, listen_database=proxy.dsn(database), installation=await direct.connect())
    stop = await store.listen(["cairnq_done"], heard.on_notify, heard.on_state)
    await heard.until(True)
    proxy.black_hole(Direction.REPLIES)
    await heard.until(True, False)
    proxy.pass_through()
    await heard.until(True, False, True)
    await stop()
    await store.close()
    await direct.close()


# --- waits ----------------------------------------------------------------------------------------------


async def test_it_listens_only_while_somebody_waits(
    client: CairnQ, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wait, "LINGER_S", 0.05)
    tasks = [await client.submit("x") for _ in range(3)]
    await client.list()
    assert sessions(database, LISTENING) == []
    waits = [asyncio.create_task(client.wait(task.id, **NEVER)) for task in tasks]
    await until_sessions(database, LISTENING, lambda pids: len(pids) == 1)
    for task in tasks:
        await client.cancel(task.id)
    await asyncio.gather(*waits)
    await until_sessions(database, LISTENING, lambda pids: not pids)


async def test_a_loop_of_waits_keeps_one_session(client: CairnQ, database: str) -> None:
    seen = set()
    for _ in range(5):
        task = await client.submit("x")
        waiting = asyncio.create_task(client.wait(task.id, **NEVER))
        seen |= set(await until_sessions(database, LISTENING, lambda pids: len(pids) == 1))
        await client.cancel(task.id)
        await waiting
    assert len(seen) == 1


async def test_a_client_that_closes_takes_its_session_along(open_client: OpenClient, database: str) -> None:
    client = await open_client()
    task = await client.submit("x")
    waiting = asyncio.create_task(client.wait(task.id, **NEVER))
    await until_sessions(database, LISTENING, lambda pids: len(pids) == 1)
    await client.cancel(task.id)
    await waiting
    await client.close()
    await until_sessions(database, LISTENING, lambda pids: not pids)


async def test_what_ended_while_nobody_listened_is_found_when_it_listens_again(
    client: CairnQ, open_client: OpenClient, database: str
) -> None:
    other = await open_client()
    task = await client.submit("x")
    waiting = asyncio.create_task(client.wait(task.id, **NEVER))
    await until_sessions(database, LISTENING, lambda pids: len(pids) == 1)
    [running] = await other.store.claim(["default"], ME)
    terminate(database, sessions(database, LISTENING))
    await other.store.complete(running.id, ME, "r")
    assert (await waiting).result == "r"


async def test_a_wait_ends_by_poll_where_listen_cannot_work(database: str) -> None:
    """A listen_database that nobody answers at: notifications never come, the wait ends all the same."""
    async with CairnQ.postgres(database, listen_database="postgresql://nobody@127.0.0.1:1/none") as client:
        task = await client.submit("x")
        waiting = asyncio.create_task(client.wait(task.id, poll_ms=5, max_poll_ms=10))
        await client.cancel(task.id)
        assert (await waiting).canceled


def test_a_listen_database_that_does_not_parse_is_named() -> None:
    with pytest.raises(InvalidDsn, match="listen_database"):
        CairnQ.postgres("postgresql://postgres@127.0.0.1/x", listen_database="postgresql://u:secret%zz@h")
