"""Workers behind PgBouncer in transaction mode, the keeper on a direct connection."""

from __future__ import annotations

import pytest

FLEET = """
app = "gates:registry"
lease = "5s"
listen_database = "{direct}"
[queues.default]
processes = 2
"""


@pytest.fixture
def config(database):
    return FLEET.format(direct=database)


@pytest.mark.fault(row=20)
async def test_a_fleet_behind_a_pooler_runs_listens_and_survives_a_crash(runs, client, gate, pooler, database, config):
    run = await runs.start(config, dsn=pooler.dsn(database))
    await run.ready()
    await run.event("keeper.listening")
    for number in range(20):
        assert await client.call("echo", number) == number
    task = await client.submit("gated", gate.path)
    run.kill((await gate.arrival()).pid)
    await run.event("worker.settled", requeued=1)
    again = await gate.arrival()
    assert (again.task_id, again.attempt) == (task.id, 2)
    await run.event("lease.beat", renewed=1)
    again.let_go()
    assert (await client.wait(task.id)).succeeded
    assert await run.stop() == 0
    assert run.count("database.failed") == 0
