"""The tests' own ground: servers, databases, the clock, the proxy."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.support.clock import ClockOfDatabase
from tests.support.cluster import Cluster
from tests.support.proxy import Direction, Proxy


def test_each_database_is_fresh_and_its_own(server: Cluster, database: str, empty_database: str) -> None:
    assert database != empty_database
    with psycopg.connect(empty_database) as connection:
        assert connection.execute("select count(*) from pg_tables where schemaname = 'public'").fetchone() == (0,)


def test_a_server_that_was_stopped_starts_again_with_its_data(own_server: Cluster) -> None:
    with own_server.connect() as connection:
        connection.execute("create table kept (x int)")
    first = own_server.pid
    own_server.restart(signal.SIGQUIT)
    assert own_server.pid != first
    with own_server.connect() as connection:
        assert connection.execute("select count(*) from kept").fetchone() == (0,)


def test_a_closed_server_leaves_no_process_and_no_file(own_server: Cluster) -> None:
    assert own_server.pid is not None
    server = os.pidfd_open(own_server.pid)
    own_server.close()
    with pytest.raises(ProcessLookupError):
        signal.pidfd_send_signal(server, 0)
    os.close(server)
    assert not own_server.folder.exists()


_KILLED = """
import os, signal, sys
from tests.support import binaries
from tests.support.cluster import Cluster
from tests.support.guarded import server_identity
cluster = Cluster(binaries.find()[-1], server_identity())
cluster.create()
print(cluster.pid, cluster.folder, flush=True)
sys.stdin.read()
"""


def test_a_server_dies_with_tests_that_were_killed() -> None:
    tests = subprocess.Popen([sys.executable, "-c", _KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert tests.stdin is not None
    assert tests.stdout is not None
    pid, folder = tests.stdout.readline().split()
    server = os.pidfd_open(int(pid))
    guard = os.pidfd_open(int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]))
    tests.kill()
    tests.wait()
    for descriptor in (server, guard):
        assert wait_readable(descriptor), "it outlived the tests"
        os.close(descriptor)
    assert not Path(folder).exists()
    tests.stdin.close()
    tests.stdout.close()


def wait_readable(descriptor: int, timeout: float = 10.0) -> bool:
    import select

    return bool(select.select([descriptor], [], [], timeout)[0])


def test_the_clock_moves_every_connection_of_its_database(database: str, test_clock: ClockOfDatabase) -> None:
    read = "select extract(epoch from now()), extract(epoch from clock_timestamp()), current_schema()"
    with psycopg.connect(database, autocommit=True) as connection:
        before = connection.execute(read).fetchone()
        test_clock.advance(3_600_000)
        after = connection.execute(read).fetchone()
    assert before is not None
    assert after is not None
    assert 3600 <= after[0] - before[0] < 3660
    assert 3600 <= after[1] - before[1] < 3660
    assert after[2] == "public"


async def test_the_proxy_resets_refuses_and_recovers(database: str, proxy: Proxy) -> None:
    through = proxy.dsn(database)
    connection = await psycopg.AsyncConnection.connect(through)
    await connection.execute("select 1")
    proxy.reset()
    with pytest.raises(psycopg.OperationalError):
        await connection.execute("select 1")
    await connection.close()
    proxy.refuse()
    with pytest.raises(psycopg.OperationalError, match="refused"):
        await psycopg.AsyncConnection.connect(through)
    proxy.pass_through()
    async with await psycopg.AsyncConnection.connect(through) as again:
        await again.execute("select 1")
    assert proxy.wait_for_connections(lambda number: number == 0)


async def test_the_proxy_swallows_replies_while_requests_arrive(database: str, proxy: Proxy) -> None:
    direct = await psycopg.AsyncConnection.connect(database, autocommit=True)
    await direct.execute("listen arrived")
    through = await psycopg.AsyncConnection.connect(proxy.dsn(database), autocommit=True)
    proxy.black_hole(Direction.REPLIES)
    statement = asyncio.create_task(through.execute("notify arrived"))
    assert [note.channel async for note in direct.notifies(timeout=60, stop_after=1)] == ["arrived"]
    assert not statement.done()
    proxy.pass_through()
    await statement
    await through.close()
    await direct.close()


def test_the_proxy_is_late_by_the_delay(database: str, proxy: Proxy) -> None:
    with psycopg.connect(proxy.dsn(database), autocommit=True) as connection:
        proxy.delay(0.05)
        before = connection.execute("select clock_timestamp()").fetchone()
        after = connection.execute("select clock_timestamp()").fetchone()
    assert before is not None
    assert after is not None
    assert (after[0] - before[0]).total_seconds() >= 0.1
