"""What the first settlement of a dead worker could not reach, the sweeps after it find."""

from __future__ import annotations

import psycopg

ONE = """
app = "gates:registry"
lease = "5s"
retry_backoff = "100ms"
[queues.default]
concurrency = 20
"""


async def test_a_row_that_somebody_had_locked_is_a_suspect_like_its_neighbour(runs, client, gate, database):
    run = await runs.start(ONE)
    await run.ready()
    locked, free = [await client.submit("gated", gate.path) for _ in range(2)]
    arrivals = await gate.arrivals(2)
    async with await psycopg.AsyncConnection.connect(database) as connection:
        await connection.execute("select from cairnq_tasks where id = %s for update", [locked.id])
        run.kill(arrivals[0].pid)
        await run.event("worker.settled", suspects=1)
        again = await gate.arrival()
        assert (again.task_id, again.attempt) == (free.id, 1)
    await run.event("worker.swept", tasks=1)
    late = await gate.arrival()
    assert (late.task_id, late.attempt) == (locked.id, 1)
    assert (await client.get(locked.id)).error["details"]["suspect"] == 1
    for arrival in (again, late):
        arrival.let_go()
    assert await run.stop() == 0


async def test_a_claim_that_took_effect_after_its_workers_death_is_given_back_unmarked(runs, client, gate):
    run = await runs.start(ONE)
    await run.ready()
    await client.submit("gated", gate.path)
    arrival = await gate.arrival()
    run.kill(arrival.pid)
    settled = await run.event("worker.settled", requeued=1)
    stray = await client.submit("of another program")
    [claimed] = await client.store.claim(["default"], settled["worker_id"], names=["of another program"])
    assert claimed.id == stray.id
    await run.event("worker.swept", tasks=1)
    row = await client.get(stray.id)
    assert (row.status, row.attempt, row.error) == ("queued", 0, None)
    (await gate.arrival()).let_go()
    assert await run.stop() == 0
