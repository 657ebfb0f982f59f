"""The control socket and the commands that use it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
import sys
from pathlib import Path

import pytest

from cairnq_supervisor.pure import address
from cairnq_supervisor.pure.requests import VERSION
from tests.process.support import children, descriptors

FLEET = """
app = "gates:registry"
lease = "5s"
drain_timeout = "5s"
[queues.default]
processes = 2
concurrency = 4
[queues.other]
"""


@pytest.fixture(autouse=True)
def runtime_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))


async def cairnq(run, *arguments):
    """One command about this supervisor: exit code, output, complaints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "cairnq_supervisor", *arguments, "-c", str(run.config)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "CAIRNQ_DSN": ""},
    )
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def status(run):
    code, out, err = await cairnq(run, "status", "--json")
    assert code == 0, err
    return json.loads(out)


def socket_path(run):
    return address.to_serve(run.config.resolve(), os.environ)


async def test_a_supervisor_is_found_by_a_link_that_leads_to_the_next_release_by_now(runs, tmp_path):
    """Or to the next version of a ConfigMap, which is mounted so. Whoever took the name last has it."""
    for release in ("1", "2"):
        (tmp_path / release).mkdir()
        (tmp_path / release / "cairnq.toml").write_text(FLEET)
    current = tmp_path / "current"
    current.symlink_to("1")
    first = await runs.start(current / "cairnq.toml")
    await first.ready()
    current.unlink()
    current.symlink_to("2")
    assert (await status(first))["supervisor"]["pid"] == first.pid
    second = await runs.start(current / "cairnq.toml")
    await second.ready()
    assert (await status(second))["supervisor"]["pid"] == second.pid
    assert await first.stop() == 0
    assert (await status(second))["supervisor"]["pid"] == second.pid
    assert await second.stop() == 0
    assert not list(tmp_path.glob("*.sock*"))


VERSION_1 = {
    "supervisor": "pid state started_at generation protocol_version schema database last_event",
    "keeper": "pid state leases last_beat_ms beat_latency_ms listening",
    "queues": "name processes concurrency in_flight in_flight_bytes backlog demand oldest_ms paused",
    "workers": "queue slot pid worker_id state flapping in_flight concurrency succeeded failed released rss age_s"
    " loop_lag_ms task_ids",
}
"""What commands of this version read. One of it gone, or another meaning, is another VERSION in pure/requests.py."""


async def test_the_report_holds_what_commands_of_its_version_read(runs):
    run = await runs.start(FLEET)
    await run.ready()
    report = await status(run)
    for part, names in VERSION_1.items():
        for one in report[part] if isinstance(report[part], list) else [report[part]]:
            assert set(names.split()) <= one.keys(), part
    assert VERSION == 1
    assert await run.stop() == 0


async def test_status_says_everything_about_a_fleet_at_work(runs, client, gate):
    run = await runs.start(FLEET)
    await run.ready()
    tasks = {(await client.submit("gated", gate.path)).id for _ in range(3)}
    arrivals = await gate.arrivals(3)
    report = await status(run)
    assert report["supervisor"]["pid"] == run.pid
    assert report["supervisor"]["state"] == "running"
    assert report["supervisor"]["generation"] == 1
    assert report["supervisor"]["protocol_version"] == 1
    assert report["supervisor"]["database"].startswith("postgresql://postgres@127.0.0.1:")
    assert report["supervisor"]["started_at"].endswith("+00:00")
    assert report["keeper"]["state"] == "ready"
    assert [(queue["name"], queue["processes"]) for queue in report["queues"]] == [
        ("default", {"want": 2, "ready": 2}),
        ("other", {"want": 1, "ready": 1}),
    ]
    assert report["queues"][0]["in_flight"] == 3
    assert {(worker["queue"], worker["slot"]) for worker in report["workers"]} == {
        ("default", 0),
        ("default", 1),
        ("other", 0),
    }
    assert {task for worker in report["workers"] for task in worker["task_ids"]} == tasks
    assert all(worker["rss"] > 1 << 20 and worker["age_s"] >= 0 for worker in report["workers"])
    assert report["keeper"]["leases"] == 3
    assert report["totals"]["claimed"] == report["totals"]["in_flight"] == 3
    for arrival in arrivals:
        arrival.let_go()
        await client.wait(arrival.task_id)
    while (report := await status(run))["totals"]["succeeded"] < 3:
        pass  # the row may be read before its worker has heard of it
    assert report["keeper"]["leases"] == 0
    run.kill(arrivals[0].pid)
    await run.event("worker.died")
    assert (await status(run))["totals"]["succeeded"] == 3
    assert await run.stop() == 0


async def test_status_for_people_fits_on_a_screen(runs):
    run = await runs.start(FLEET)
    await run.ready()
    code, out, _ = await cairnq(run, "status")
    assert code == 0
    assert "default/1" in out
    assert "keeper" in out
    assert "ready" in out
    assert await run.stop() == 0


async def test_scale_adds_and_takes_away_while_tasks_run(runs, client, gate):
    run = await runs.start(FLEET)
    await run.ready()
    await run.events("worker.ready", 3)
    assert await cairnq(run, "scale", "default", "4") == (0, "default is to have 4 worker process(es)\n", "")
    new = await run.events("worker.ready", 2, queue="default")
    assert sorted(event["slot"] for event in new) == [2, 3]
    tasks = [await client.submit("gated", gate.path) for _ in range(16)]
    arrivals = await gate.arrivals(16)
    assert (await cairnq(run, "scale", "default", "1"))[0] == 0
    for arrival in arrivals:
        arrival.let_go()
    left = await run.events("worker.exited", 3, queue="default")
    assert sorted(event["slot"] for event in left) == [1, 2, 3]
    for task in tasks:
        assert (await client.wait(task.id)).attempt == 1
    report = await status(run)
    assert report["queues"][0]["processes"] == {"want": 1, "ready": 1}
    assert len(report["workers"]) == 2
    assert await client.call("echo", 1) == 1
    assert await run.stop() == 0


async def test_ttin_and_ttou_scale_every_queue_but_never_to_nothing(runs):
    run = await runs.start(FLEET)
    await run.ready()
    await run.events("worker.ready", 3)
    run.send(signal.SIGTTIN)
    assert {event["queue"] for event in await run.events("worker.ready", 2)} == {"default", "other"}
    run.send(signal.SIGTTOU)
    await run.events("worker.exited", 2)
    run.send(signal.SIGTTOU)
    await run.event("worker.exited", queue="default")
    run.send(signal.SIGTTOU)
    processes = [queue["processes"]["want"] for queue in (await status(run))["queues"]]
    assert processes == [1, 1]
    assert await run.stop() == 0


async def test_pause_and_resume_one_queue(runs, client):
    run = await runs.start(FLEET)
    await run.ready()
    assert await cairnq(run, "pause", "other") == (0, "paused: other\n", "")
    waiting = await client.submit("echo", 1, queue="other")
    assert await client.call("echo", 2) == 2
    assert (await status(run))["queues"][1]["paused"]
    victim = next(event for event in run.heard if event["event"] == "worker.ready" and event["queue"] == "other")
    run.kill(victim["pid"])
    await run.event("worker.died")
    await run.event("worker.ready", queue="other")
    await run.event("worker.ready", queue="other")
    assert (await client.get(waiting.id)).attempt == 0
    assert (await cairnq(run, "resume"))[1] == "resumed: default, other\n"
    assert (await client.wait(waiting.id)).succeeded
    assert await run.stop() == 0


async def test_drain_by_command(runs):
    run = await runs.start(FLEET)
    await run.ready()
    assert await cairnq(run, "drain") == (0, "draining\n", "")
    assert await run.exit_code() == 0


async def test_nobody_answers_is_exit_69_and_says_where_it_looked(runs):
    run = await runs.start(FLEET)
    await run.ready()
    path = socket_path(run)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert await run.stop() == 0
    assert not path.exists()
    code, _, err = await cairnq(run, "status")
    assert code == 69
    assert str(path) in err


IMPOSSIBLE = [
    (("scale", "nobody", "2"), "there is no queue 'nobody' here; there are: default, other"),
    (("pause", "nobody"), "there is no queue 'nobody'"),
    (("scale", "default", "-1"), "not a whole number from 0 to 256"),
]


async def test_what_cannot_be_done_is_refused_by_name(runs):
    run = await runs.start(FLEET)
    await run.ready()
    for arguments, says in IMPOSSIBLE:
        code, _, err = await cairnq(run, *arguments)
        assert code == 64
        assert says in err
    assert await run.stop() == 0


async def test_two_supervisors_of_one_configuration_are_refused(runs):
    run = await runs.start(FLEET)
    await run.ready()
    second = await runs.start(run.config)
    assert await second.exit_code() == 78
    assert "another supervisor of this configuration is running" in second.log.read_text()
    assert await run.stop() == 0


async def test_the_socket_of_a_dead_supervisor_is_taken_over_while_its_orphans_still_live(runs, client, gate):
    run = await runs.start(FLEET)
    await run.ready()
    await client.submit("gated", gate.path)
    arrival = await gate.arrival()
    run.send(signal.SIGKILL)
    await run.exit_code()
    second = await runs.start(run.config)
    await second.ready()
    assert (await status(second))["supervisor"]["pid"] == second.pid
    arrival.let_go()
    assert await second.stop() == 0


NONSENSE = [
    b"\n",
    b"status\n",
    b"{}\n",
    b"[]\n",
    b"null\n",
    b'{"command": null}\n',
    b'{"command": "launch"}\n',
    b'{"command": "scale"}\n',
    b'{"command": "scale", "queue": "default"}\n',
    b'{"command": "scale", "queue": "default", "processes": 1e9}\n',
    b'{"command": "scale", "queue": ["default"], "processes": 1}\n',
    b'{"command": "pause", "queue": {}}\n',
    b'{"command": "status", "more": 1}\n',
    b"\xff\xfe\x00\n",
    b"[" * 60_000 + b"\n",
    b"x" * 200_000,
]


async def test_nonsense_is_answered_and_hurts_nobody(runs):
    run = await runs.start(FLEET)
    await run.ready()
    for request_line in NONSENSE:
        reader, writer = await asyncio.open_unix_connection(str(socket_path(run)))
        writer.write(request_line)
        answer = json.loads(await reader.readline())
        assert list(answer) == ["control", "error"], request_line[:100]
        writer.close()
    assert (await status(run))["supervisor"]["state"] == "running"
    assert await run.stop() == 0


async def test_clients_that_hang_or_vanish_do_not_hold_anything(runs):
    run = await runs.start(FLEET)
    await run.ready()
    before = len(descriptors(run.pid))
    idle = [socket.socket(socket.AF_UNIX) for _ in range(40)]
    for connection in idle:
        connection.connect(str(socket_path(run)))
    for connection in idle[:20]:
        connection.sendall(b'{"command": "sta')
        connection.close()
    for connection in idle[20:]:
        connection.settimeout(20)
        assert await asyncio.to_thread(connection.recv, 1) == b""
        connection.close()
    assert len(descriptors(run.pid)) == before
    assert (await status(run))["supervisor"]["state"] == "running"
    assert await run.stop() == 0


async def test_children_do_not_hold_the_control_socket(runs):
    run = await runs.start(FLEET)
    await run.ready()
    for pid in children(run.pid):
        assert not [fd for fd in descriptors(pid) if fd.endswith(".lock")]
    assert any(fd.endswith(".lock") for fd in descriptors(run.pid))
    assert await run.stop() == 0


async def test_a_path_that_no_socket_can_have_is_refused(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path / ("x" * 100)))
    run = await runs.start(FLEET)
    assert await run.exit_code() == 78
    assert "a socket's path at most 107" in run.log.read_text()


async def test_a_folder_that_takes_no_socket_is_a_warning(runs, tmp_path, monkeypatch):
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path / "missing"))
    run = await runs.start(FLEET)
    await run.event("control.unavailable")
    await run.ready()
    assert await run.stop() == 0


def test_a_shell_looks_in_run_first_and_beside_the_configuration_last():
    configuration = Path("/etc/shop/cairnq.toml")
    places = address.to_call(configuration, {"XDG_RUNTIME_DIR": "/run/user/5", "RUNTIME_DIRECTORY": "/run/a:/run/b"})
    assert [str(place.parent) for place in places] == ["/run/cairnq", "/run/a", "/run/user/5", "/etc/shop"]
    assert len({place.name for place in places}) == 1


async def test_a_range_grows_while_everybody_is_busy_and_work_waits(runs, client, gate):
    run = await runs.start(
        'app = "gates:registry"\n[queues.default]\nprocesses = {min = 1, max = 3}\nconcurrency = 1\n'
    )
    await run.ready()
    await run.event("worker.ready", slot=0)
    for _ in range(6):
        await client.submit("gated", gate.path)
    arrivals = await gate.arrivals(3)
    assert len({arrival.pid for arrival in arrivals}) == 3
    report = await status(run)
    assert report["queues"][0]["processes"] == {"want": 3, "ready": 3}
    assert await cairnq(run, "scale", "default", "1") == (0, "default is to have 1 worker process(es)\n", "")
    for arrival in arrivals:
        arrival.let_go()
    await run.events("worker.exited", 2)
    for _ in range(3):
        (await gate.arrival()).let_go()
    assert await run.stop() == 0


async def test_a_refused_start_leaves_nothing_behind(runs, tmp_path):
    run = await runs.start('app = "broken:registry"\n')
    assert await run.exit_code() == 78
    assert not list(tmp_path.glob("*.sock*"))
