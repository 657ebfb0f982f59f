"""A fleet from its start to its drain."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.process.support import children, descriptors

pytestmark = pytest.mark.sqlite

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = REPOSITORY / "examples" / "files"

TWO_QUEUES = """
app = "gates:registry"
lease = "5s"
drain_timeout = "5s"
[queues.default]
processes = 2
concurrency = 4
[queues.other]
"""


@pytest.mark.postgres
async def test_the_example_inspects_this_repository_and_drains_with_exit_0(runs, client, database):
    run = await runs.start(EXAMPLE / "cairnq.toml")
    await run.ready()
    submit = await asyncio.create_subprocess_exec(
        sys.executable,
        EXAMPLE / "submit.py",
        REPOSITORY,
        env={**os.environ, "DATABASE_URL": database},
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await submit.communicate()
    assert submit.returncode == 0
    assert b" lines  .py" in printed
    assert await run.stop() == 0
    tasks = await client.stats()
    assert set(tasks) == {"files", "reports"}
    assert tasks["reports"]["succeeded"] == 2
    assert tasks["files"]["succeeded"] > 50
    for counts in tasks.values():
        assert set(counts.values()) - {counts["succeeded"]} == {0}
    workers = {(event["queue"], event["slot"]) for event in run.heard if event["event"] == "worker.ready"}
    assert workers == {("files", 0), ("files", 1), ("reports", 0)}
    assert not [event for event in run.heard if event["level"] in ("warning", "error")]


async def test_every_child_leads_its_own_group_and_says_who_it_is(runs):
    run = await runs.start(TWO_QUEUES)
    await run.ready()
    ready = {event["pid"]: event for event in run.heard if event["event"] in ("worker.ready", "keeper.ready")}
    assert sorted(ready) == sorted(children(run.pid))
    titles = set()
    for pid in ready:
        assert os.getpgid(pid) == pid
        titles.add(" ".join(Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0 ").split()[1:3]))
    assert titles == {"keeper 0", "worker default/0", "worker default/1", "worker other/0"}
    assert len({event.get("worker_id") for event in ready.values()}) == 4
    assert await run.stop() == 0


@pytest.mark.fault(row=18)
async def test_siblings_share_no_descriptor_and_children_do_not_hold_the_event_stream(runs):
    run = await runs.start(TWO_QUEUES)
    await run.ready()
    own = {pid: set(descriptors(pid)) for pid in [run.pid, *children(run.pid)]}
    unshared = {pid: {fd for fd in fds if fd.startswith(("socket:", "pipe:"))} for pid, fds in own.items()}
    for pid, fds in unshared.items():
        for other, others in unshared.items():
            assert pid == other or not fds & others, (pid, other, fds & others)
        if pid != run.pid:
            assert not [fd for fd in own[pid] if "memfd:cairnq-leases" in fd or "pidfd" in fd]
            assert sum("memfd:cairnq-stacks" in fd for fd in descriptors(pid)) <= 1
    assert await run.stop() == 0


@pytest.mark.fault(row=18)
async def test_the_supervisor_has_one_thread_and_no_connection_and_no_secret(runs):
    run = await runs.start(TWO_QUEUES)
    await run.ready()
    assert len(list(Path(f"/proc/{run.pid}/task").iterdir())) == 1
    sockets = [fd for fd in descriptors(run.pid) if fd.startswith("socket:")]
    assert len(sockets) == 5  # a channel for each child, and the control socket
    for pid in [run.pid, *children(run.pid)]:
        assert b"postgresql://" not in Path(f"/proc/{pid}/environ").read_bytes()
        assert b"postgresql://" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    assert await run.stop() == 0


async def test_an_idle_supervisor_sleeps(runs):
    """No tick, and no beat while nobody holds anything: the keeper alone is asked for a sign of life, every 5 s."""
    run = await runs.start('app = "gates:registry"\nlease = "1s"\n')
    await run.ready()

    def switches():
        status = Path(f"/proc/{run.pid}/status").read_text().splitlines()
        return sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)

    await run.event("keeper.listening")
    while Path(f"/proc/{run.pid}/stat").read_text().rpartition(")")[2].split()[0] != "S":
        continue  # it has said so, and has not gone to sleep yet
    before = switches()
    await asyncio.sleep(2)  # sleep: nothing must happen, and nothing tells when it did not
    assert switches() - before == 0
    assert run.count("lease.beat") == 0
    assert await run.stop() == 0


async def test_drain_lets_a_running_handler_finish_and_stops_claiming(runs, client, gate):
    run = await runs.start(TWO_QUEUES)
    await run.ready()
    running = await client.submit("gated", gate.path)
    arrival = await gate.arrival()
    run.send(signal.SIGTERM)
    await run.event("drain.started", cause="SIGTERM")
    left = await client.submit("gated", gate.path)
    arrival.let_go()
    assert await run.exit_code() == 0
    assert (await client.get(running.id)).succeeded
    assert (await client.get(left.id)).attempt == 0


@pytest.mark.fault(row=13)
@pytest.mark.fault(row=14)
async def test_drain_timeout_gives_back_what_still_runs_without_spending_the_attempt(runs, client, gate):
    run = await runs.start(TWO_QUEUES.replace('drain_timeout = "5s"', 'drain_timeout = "200ms"'))
    await run.ready()
    asynchronous = await client.submit("gated", gate.path)
    plain = await client.submit("gated_plain", gate.path)
    stubborn = await client.submit("stubborn", gate.path)
    once = await client.submit("gated_plain", gate.path, max_attempts=1)
    await gate.arrivals(4)
    assert await run.stop() == 0
    for task_id in (asynchronous.id, plain.id, stubborn.id):
        task = await client.get(task_id)
        assert (task.status, task.attempt) == ("queued", 0), task.name
    task = await client.get(once.id)
    assert (task.status, task.error["code"]) == ("failed", "interrupted")


@pytest.mark.fault(row=15)
async def test_signals_to_the_whole_group_and_repeats_are_one_drain(runs, client, gate):
    run = await runs.start(TWO_QUEUES)
    await run.ready()
    await client.submit("gated", gate.path)
    arrival = await gate.arrival()
    for pid in children(run.pid):
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGINT)
    run.send(signal.SIGTERM)
    await run.event("drain.started")
    run.send(signal.SIGTERM)
    run.send(signal.SIGINT)
    await run.events("signal.ignored", 2)
    arrival.let_go()
    assert await run.exit_code() == 0
    assert run.count("drain.started") == 1
    assert run.count("drain.hastened") == 0
    assert run.count("worker.died") == 0


@pytest.mark.fault(row=15)
async def test_a_signal_that_comes_when_all_is_over_does_not_change_the_exit_code(runs):
    run = await runs.start('app = "parting:registry"\n')
    await run.ready()
    assert await run.stop() == 0


async def test_quit_releases_and_leaves_at_once(runs, client, gate):
    run = await runs.start(TWO_QUEUES.replace('drain_timeout = "5s"', 'drain_timeout = "10m"'))
    await run.ready()
    task = await client.submit("gated", gate.path)
    await gate.arrival()
    run.send(signal.SIGTERM)
    await run.event("drain.started")
    run.send(signal.SIGQUIT)
    assert await run.exit_code() == 0
    assert await run.event("drain.hastened", cause="SIGQUIT")
    assert (await client.get(task.id)).attempt == 0


async def test_tstp_stops_claiming_and_cont_resumes(runs, client, gate):
    run = await runs.start(TWO_QUEUES)
    await run.ready()
    running = await client.submit("gated", gate.path)
    arrival = await gate.arrival()
    run.send(signal.SIGTSTP)
    await run.event("supervisor.quiesced")
    arrival.let_go()
    await client.wait(running.id)
    waiting = await client.submit("echo", 1)
    run.send(signal.SIGCONT)
    await run.event("supervisor.resumed")
    assert (await client.wait(waiting.id)).succeeded
    assert await run.stop() == 0
