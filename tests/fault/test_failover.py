"""Row 19: the server dies, its standby is promoted, and everybody goes on there."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import psycopg
import pytest

from cairnq import CairnQ
from tests.process.support import Runs, until
from tests.support.cluster import Cluster
from tests.support.guarded import server_identity

FLEET = """
app = "gates:registry"
lease = "20s"
[queues.default]
processes = 2
concurrency = 4
"""


@pytest.fixture
def standby(own_server):
    """A copy of `own_server` that follows it."""
    standby = Cluster(own_server.binaries, server_identity())
    own_server.stop()
    shutil.copytree(own_server.data, standby.data)
    settings = {
        "unix_socket_directories": standby.folder,
        "primary_conninfo": f"host=127.0.0.1 port={own_server.port} user=postgres",
    }
    with Path(standby.data, "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
    Path(standby.data, "standby.signal").touch()
    for path in (standby.data, *standby.data.rglob("*")):
        server_identity().own(path)
    own_server.start()
    standby.start()
    yield standby
    standby.close()


@pytest.mark.slow
@pytest.mark.fault(row=19)
async def test_claims_and_calls_go_on_at_a_promoted_standby(own_server, standby, gate, tmp_path):
    hosts = f"127.0.0.1:{own_server.port},127.0.0.1:{standby.port}"
    dsn = f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write"
    runs = Runs(tmp_path, dsn)
    try:
        async with CairnQ.postgres(dsn) as client:
            run = await runs.start(FLEET)
            await run.ready()
            held = await client.submit("gated", gate.path)
            arrival = await gate.arrival()
            late = await client.submit("gated", gate.path, delay_ms=1500)
            with own_server.connect() as primary:
                await until(lambda: has_followed(primary))
            own_server.stop(signal.SIGQUIT)
            await run.event("database.failed")
            arrival.let_go("through it all")
            with standby.connect() as promoted:
                promoted.execute("select pg_promote()")
                at = promoted.execute("select extract(epoch from clock_timestamp())").fetchone()[0]
            done = await client.wait(held.id)
            assert (done.status, done.result, done.attempt) == ("succeeded", "through it all", 1)
            again = await gate.arrival()
            with psycopg.connect(standby.dsn(), autocommit=True) as looking:
                now = looking.execute("select extract(epoch from clock_timestamp())").fetchone()[0]
            print(f"{now - at:.2f} s from the promotion to the next claim")
            assert (again.task_id, again.attempt) == (late.id, 1)
            again.let_go()
            assert (await client.wait(late.id)).succeeded
            assert await client.call("echo", 1) == 1
            await run.event("database.recovered")
            assert run.count("worker.died") == run.count("keeper.died") == run.count("lease.lost") == 0
            assert await run.stop() == 0
    finally:
        await runs.close()


def has_followed(primary):
    """Whether all that the server has written has been replayed by the one that follows it."""
    [(followed,)] = primary.execute(
        "select coalesce(bool_and(replay_lsn >= pg_current_wal_lsn()), false) from pg_stat_replication"
    ).fetchall()
    return followed
