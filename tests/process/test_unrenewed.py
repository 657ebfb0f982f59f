"""While nobody renews leases nothing more is claimed, and what has run out is not queued again to run out once more."""

from __future__ import annotations

import asyncio
import contextlib
import signal

import psycopg

from tests.process.support import until

FLEET = """
app = "gates:registry"
lease = "2s"
drain_timeout = "5s"
retry_backoff = "100ms"
[queues.default]
processes = 2
concurrency = 2
"""

FARED = """
select count(*) filter (where status = 'running'
        and lease_until_ms < extract(epoch from clock_timestamp()) * 1000 - 3000) as lapsed,
    max(attempt) as attempts
from cairnq_tasks
"""


async def test_a_stopped_supervisor_costs_what_ran_one_attempt_and_what_waits_none(runs, client, gate, database):
    run = await runs.start(FLEET)
    await run.ready()
    tasks = await client.submit_many([{"name": "gated", "payload": gate.path} for _ in range(12)])
    ran = await gate.arrivals(4)
    run.send(signal.SIGSTOP)
    try:
        for arrival in ran:
            await arrival.cut_off()
        with psycopg.connect(database, autocommit=True) as looking:

            def is_over():
                lapsed, attempts = looking.execute(FARED).fetchone()
                return lapsed >= len(ran) or attempts > 2

            await until(is_over)
            assert looking.execute("select count(*) from cairnq_tasks where attempt > 2").fetchone() == (0,)
    finally:
        run.send(signal.SIGCONT)
    opening = asyncio.ensure_future(let_all_go(gate))
    for task in tasks:
        done = await client.wait(task.id, timeout_ms=60_000)
        assert done.succeeded
        assert done.attempt <= 2
    opening.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await opening
    assert await run.stop() == 0


async def let_all_go(gate):
    while True:
        (await gate.arrival()).let_go()
