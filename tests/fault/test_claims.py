"""Row 2: everything looks alive, and a claim is never answered."""

from __future__ import annotations

import os
import signal

import psycopg
import pytest

FLEET = """
app = "gates:registry"
lease = "5s"
[queues.default]
concurrency = 2
"""


@pytest.mark.fault(row=2)
async def test_a_server_process_that_never_answers_does_not_stop_the_claims(runs, client, gate, database):
    """Every process of the server that serves the fleet is stopped, the connections stay open, and beats go on."""
    run = await runs.start(FLEET)
    await run.ready()
    held = await client.submit("gated", gate.path)
    arrival = await gate.arrival()
    await run.event("lease.beat", renewed=1)
    with psycopg.connect(database, autocommit=True) as watch:
        rows = watch.execute(
            "select pid from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()"
            " and backend_type = 'client backend' and query not ilike 'listen%%' and query ilike '%%cairnq_tasks%%'"
        ).fetchall()
    stopped = [pid for (pid,) in rows]
    assert stopped
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        async with client.__class__.postgres(database) as other:
            task = await other.submit("echo", 1)
            assert (await other.wait(task.id)).succeeded
        await run.event("lease.beat", renewed=1)
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    arrival.let_go()
    done = await client.wait(held.id)
    assert (done.status, done.attempt) == ("succeeded", 1)
    assert await run.stop() == 0
    assert run.count("worker.died") == run.count("keeper.died") == 0
