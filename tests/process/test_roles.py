"""A fleet whose role may do no more than a worker needs, for a client that may do less."""

from __future__ import annotations

import signal

from cairnq import CairnQ
from tests.process.support import said_by
from tests.support.roles import role_of

FLEET = """
app = "gates:registry"
migrate = false
lease = "5s"
drain_timeout = "5s"
[queues.default]
processes = 2
concurrency = 2
[retention]
canceled = "0s"
"""


async def test_a_fleet_and_its_clients_need_no_more_than_cairnq_roles_gives_them(runs, client, database, gate):
    await client.cancel((await client.submit("echo")).id)  # there for the first round of upkeep, whenever it is
    with role_of(database, "worker") as worker, role_of(database, "client") as client_dsn:
        run = await runs.start(FLEET, dsn=worker)
        await run.ready()
        async with CairnQ.postgres(client_dsn) as lesser:
            assert (await lesser.wait((await lesser.submit("echo", 1, key="k")).id)).result == 1
            held = await lesser.submit("gated", gate.path)
            (arrival,) = await gate.arrivals(1)
            run.kill(arrival.pid, signal.SIGKILL)
            await run.event("worker.settled", requeued=1)
            (again,) = await gate.arrivals(1)
            again.let_go()
            assert (await lesser.wait(held.id)).succeeded
        await run.event("retention.swept", canceled=1)
        checked = await said_by(run, "check", dsn=worker)
        assert "may do all that is needed" in checked
        assert "fault" not in checked.splitlines()[-1], checked
        assert run.count("upkeep.failed") == 0
        assert await run.stop() == 0
