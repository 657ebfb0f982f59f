"""A large fleet starts a few workers at a time, and hears a signal between two forks."""

from __future__ import annotations

from cairnq_supervisor.loop.fleet import BOOTS_PER_CORE
from cairnq_supervisor.system.cores import granted_cores

MOST = BOOTS_PER_CORE * granted_cores()
LARGE = 'app = "gates:registry"\nlease = "5s"\n[queues.default]\nprocesses = {processes}\n'


async def test_a_large_fleet_boots_a_few_workers_at_a_time(runs):
    run = await runs.start(LARGE.format(processes=MOST + 8) + "[queues.other]\n")
    await run.ready()
    booting, most = 0, 0
    for event in run.heard:
        booting += {"worker.started": 1, "worker.ready": -1}.get(event["event"], 0)
        most = max(most, booting)
    assert most <= MOST
    started = [(event["queue"], event["slot"]) for event in run.heard if event["event"] == "worker.started"]
    assert len(started) == len(set(started)) == MOST + 9
    assert ("other", 0) in started[:2], "the first ones of every queue come first"
    assert await run.stop() == 0


async def test_a_term_is_heard_between_two_forks(runs):
    run = await runs.start(LARGE.format(processes=200))
    await run.event("worker.started")
    assert await run.stop() == 0
    assert 0 < run.count("worker.started") < 200
    assert run.count("supervisor.running") == 0
    assert run.count("drain.started", cause="SIGTERM") == 1
