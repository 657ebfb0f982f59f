"""Health, readiness and metrics of a running tree, asked over HTTP while it works, drains, is stopped and is hurt."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from pathlib import Path

import psycopg
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.process.support import children, said_by

COMPONENTS = Path(__file__).parents[2] / "deploy" / "kubernetes" / "components"
FLEET = """
app = "gates:registry"
lease = "5s"
drain_timeout = "5s"
http = "127.0.0.1:0"
retry_backoff = "0s"
max_in_flight_bytes = "8MiB"
[queues.default]
processes = 2
concurrency = 4
max_in_flight_bytes = "1MiB"
"""
SILENT = (503, "the supervisor has not answered for 2 s\n")


class Gateway:
    def __init__(self, port):
        self.port = port

    async def get(self, path):
        """Status code and body."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(f"GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        head, _, body = answer.decode().partition("\r\n\r\n")
        return int(head.split()[1]), body

    async def until_told(self, path):
        """The page, however late the supervisor of a busy machine answers. Whatever came, it is an HTTP answer."""
        while True:
            code, text = await self.get(path)
            if (code, text) != SILENT:
                assert code == 200, text
                return text

    async def metrics(self):
        text = await self.until_told("/metrics")
        return {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    async def until(self, metric, value, **labels):
        """The page once this sample has this value. The hang limit ends a wait that does not."""
        while True:
            samples = await self.metrics()
            if samples.get((metric, *sorted(labels.items()))) == value:
                return samples


def manifest(name):
    return yaml.safe_load((COMPONENTS / name).read_text())


async def start(runs, config=FLEET):
    run = await runs.start(config)
    listening = await run.event("gateway.listening")
    return run, Gateway(listening["port"])


async def test_a_tree_at_work_is_alive_ready_and_counted(runs, client):
    run, gateway = await start(runs)
    await run.ready()
    assert await gateway.until_told("/livez") == "ok\n"
    assert await gateway.until_told("/readyz") == "ready\n"
    tasks = [await client.submit("echo", 1) for _ in range(3)]
    tasks.append(await client.submit("nobody", 1, queue="elsewhere"))
    for task in tasks[:3]:
        await client.wait(task.id)
    labels = {"queue": "default", "name": "echo"}
    await gateway.until("cairnq_tasks_ended_total", 3, **labels, outcome="succeeded")
    await gateway.until("cairnq_leases", 0)
    samples = await gateway.until("cairnq_queue_backlog", 0, queue="default")
    assert samples["cairnq_tasks_claimed_total", ("name", "echo"), ("queue", "default")] == 3
    assert samples["cairnq_task_duration_seconds_count", ("name", "echo"), ("queue", "default")] == 3
    assert samples["cairnq_task_wait_seconds_count", ("name", "echo"), ("queue", "default")] == 3
    assert samples["cairnq_queue_processes_ready", ("queue", "default")] == 2
    queue = ("queue", "default")
    assert samples["cairnq_queue_concurrency", queue] == 8
    assert samples["cairnq_queue_in_flight_calls", queue] == 0
    assert samples["cairnq_queue_in_flight_bytes", queue] == 0
    assert samples["cairnq_queue_in_flight_bytes_limit", queue] == 1 << 20
    assert samples["cairnq_in_flight_bytes_limit",] == 8 << 20
    assert samples["cairnq_in_flight_bytes",] == 0
    assert samples["cairnq_worker_resident_bytes", queue, ("slot", "1")] > 1 << 20
    assert samples["cairnq_beat_failures_total", ("cause", "database")] == 0
    assert samples["cairnq_events_total", ("event", "worker.ready")] == 2
    code, body = await gateway.get("/other")
    assert code == 404
    assert "/metrics" in body
    assert await run.stop() == 0


@pytest.mark.postgres
async def test_both_scalers_are_told_the_same_by_the_page_and_by_the_database(runs, client, gate, database):
    """The metric that the HorizontalPodAutoscaler names, and the query of the ScaledObject: due and running tasks."""
    (external,) = manifest("hpa/autoscaler.yaml")["spec"]["metrics"]
    wanted = external["external"]["metric"]
    (trigger,) = manifest("keda/scaledobject.yaml")["spec"]["triggers"]
    run, gateway = await start(runs)
    await run.ready()
    for _ in range(2):
        await client.submit("gated", gate.path)
    await gate.arrivals(2)
    assert "paused" in await said_by(run, "pause")
    for _ in range(3):
        await client.submit("gated", gate.path)
    await client.submit("gated", gate.path, delay_ms=3_600_000)
    await gateway.until(wanted["name"], 5, **wanted["selector"]["matchLabels"])
    async with await psycopg.AsyncConnection.connect(database) as connection:
        cursor = await connection.execute(trigger["metadata"]["query"])
        assert await cursor.fetchone() == (5,)
    run.send(signal.SIGQUIT)
    assert await run.exit_code() == 0


async def test_a_drain_is_alive_and_not_ready_and_says_so(runs, client, gate):
    run, gateway = await start(runs)
    await run.ready()
    await client.submit("gated", gate.path)
    (arrival,) = await gate.arrivals(1)
    run.send(signal.SIGTERM)
    await run.event("drain.started")
    assert await gateway.until_told("/livez") == "ok\n"
    code, body = await gateway.get("/readyz")
    assert code == 503
    assert body.startswith("the supervisor is draining\n")
    arrival.let_go()
    assert await run.exit_code() == 0
    with pytest.raises(ConnectionError):
        await gateway.get("/livez")


async def test_a_supervisor_that_is_stopped_fails_its_liveness_and_recovers(runs):
    run, gateway = await start(runs)
    await run.ready()
    os.kill(run.pid, signal.SIGSTOP)
    try:
        code, body = await gateway.get("/livez")
    finally:
        os.kill(run.pid, signal.SIGCONT)
    assert (code, body) == SILENT
    assert await gateway.until_told("/livez") == "ok\n"
    assert await run.stop() == 0


async def test_a_gateway_that_dies_is_reborn_on_the_same_port_and_refuses_nobody(runs):
    run, gateway = await start(runs)
    ready = await run.event("gateway.ready")
    await run.ready()
    os.kill(ready["pid"], signal.SIGKILL)
    assert await gateway.until_told("/livez") == "ok\n"
    died = await run.event("gateway.died")
    assert died["signal"] == signal.SIGKILL
    samples = await gateway.metrics()
    assert samples["cairnq_process_deaths_total", ("cause", "signal 9 (SIGKILL)"), ("queue", "")] == 1
    assert await run.stop() == 0


async def test_what_fails_is_retried_or_crashes_is_counted_by_name(runs, client, gate):
    run, gateway = await start(runs)
    await run.ready()
    nowhere = await client.submit("gated", "/nonexistent", max_attempts=2)
    assert (await client.wait(nowhere.id)).failed
    named = {"name": "gated", "queue": "default"}
    await gateway.until("cairnq_tasks_ended_total", 1, **named, outcome="failed")
    await gateway.until("cairnq_tasks_ended_total", 1, **named, outcome="retried")
    await client.submit("gated", gate.path)
    (arrival,) = await gate.arrivals(1)
    await run.event("lease.beat", renewed=1)
    samples = await gateway.until("cairnq_leases", 1)
    assert samples["cairnq_beat_seconds_count",] >= 1
    run.kill(arrival.pid)
    await run.event("worker.settled")
    samples = await gateway.until("cairnq_tasks_crashed_total", 1, **named)
    assert samples["cairnq_process_deaths_total", ("cause", "signal 9 (SIGKILL)"), ("queue", "default")] == 1
    (again,) = await gate.arrivals(1)
    run.send(signal.SIGQUIT)
    await again.cut_off()
    assert await run.exit_code() == 0


async def test_counts_survive_their_worker(runs, client):
    run, gateway = await start(runs)
    await run.ready()
    task = await client.submit("echo", 1)
    await client.wait(task.id)
    labels = {"queue": "default", "name": "echo"}
    await gateway.until("cairnq_tasks_ended_total", 1, **labels, outcome="succeeded")
    for worker in [event["pid"] for event in run.heard if event["event"] == "worker.ready"]:
        run.kill(worker)
        await run.event("worker.died", pid=worker)
    samples = await gateway.metrics()
    assert samples["cairnq_tasks_ended_total", ("name", "echo"), ("outcome", "succeeded"), ("queue", "default")] == 1
    assert await run.stop() == 0


async def test_a_database_that_is_away_fails_neither_liveness_nor_readiness(runs, client, gate, proxy, database):
    run = await runs.start(FLEET, dsn=proxy.dsn(database))
    gateway = Gateway((await run.event("gateway.listening"))["port"])
    await run.ready()
    await client.submit("gated", gate.path)
    (arrival,) = await gate.arrivals(1)
    proxy.refuse()
    await run.event("database.failed")
    await run.event("lease.beat-failed", cause="database")
    assert await gateway.until_told("/livez") == "ok\n"
    assert await gateway.until_told("/readyz") == "ready\n"
    samples = await gateway.metrics()
    assert [key for key in samples if key[0] == "cairnq_database_failures_total"]
    assert samples["cairnq_beat_failures_total", ("cause", "database")] >= 1
    arrival.let_go()
    proxy.pass_through()
    await run.event("database.recovered")
    assert await run.stop() == 0


async def test_a_flood_of_connections_and_scrapes_leaves_the_tree_untouched(runs, client):
    run, gateway = await start(runs)
    await run.ready()
    before = set(children(run.pid))
    crowd = []
    for _ in range(1000):
        sock = socket.socket()
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", gateway.port))
        crowd.append(sock)
    scrapes = await asyncio.gather(*(gateway.until_told("/metrics") for _ in range(20)))
    for text in scrapes:
        assert "cairnq_leases" in {family.name for family in text_string_to_metric_families(text)}
    task = await client.submit("echo", 1)
    assert (await client.wait(task.id)).succeeded
    for sock in crowd:
        sock.close()
    assert set(children(run.pid)) == before
    assert run.count("lease.lost") == 0
    assert await run.stop() == 0


async def test_the_address_of_the_supervisor_that_is_to_be_replaced_is_no_fault(runs, database):
    run, gateway = await start(runs)
    await run.ready()
    run.config.write_text(FLEET.replace(":0", f":{gateway.port}"))
    assert f"is in use while the supervisor of this configuration runs (pid {run.pid})" in await said_by(run, "check")
    with socket.create_server(("127.0.0.1", 0)) as another:
        port = another.getsockname()[1]
        run.config.write_text(FLEET.replace(":0", f":{port}"))
        assert f"cannot listen on 127.0.0.1:{port}" in await said_by(run, "check")
    assert await run.stop() == 0


async def test_an_address_that_is_taken_is_78(runs):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        run = await runs.start(FLEET.replace(":0", f":{port}"))
        refused = await run.event("supervisor.refused")
        assert "in use" in refused["reason"]
        assert await run.exit_code() == 78


def ask_for(run, http):
    """A reload after which the gateway is to be there."""
    run.config.write_text(FLEET.replace('http = "127.0.0.1:0"', f'http = "{http}"' if http else ""))
    run.send(signal.SIGHUP)


async def test_a_reload_moves_the_gateway_or_says_why_it_stays(runs):
    run, gateway = await start(runs)
    await run.ready()
    with socket.create_server(("127.0.0.1", 0)) as another:
        ask_for(run, f"0.0.0.0:{another.getsockname()[1]}")
        failed = await run.event("reload.failed")
    assert "http cannot listen on" in failed["reason"]
    assert await gateway.until_told("/livez") == "ok\n", "the old one stays"

    ask_for(run, "localhost:0")
    moved = Gateway((await run.event("gateway.listening"))["port"])
    assert await moved.until_told("/livez") == "ok\n"
    await run.event("gateway.exited")
    await run.event("reload.finished")
    with pytest.raises(ConnectionError):
        await gateway.get("/livez")

    ask_for(run, None)
    await run.event("gateway.exited")
    await run.event("reload.finished")
    with pytest.raises(ConnectionError):
        await moved.get("/livez")
    assert not listening_sockets() & open_files(run.pid)
    assert await run.stop() == 0


async def test_a_move_to_another_host_part_of_the_same_port_leaves_no_request_unanswered(runs):
    run, gateway = await start(runs)
    await run.ready()
    former = (await run.event("gateway.ready"))["pid"]
    os.kill(former, signal.SIGSTOP)  # so that all of these stand in its line when it is told to leave
    in_line = [asyncio.ensure_future(gateway.get("/livez")) for _ in range(5)]
    ask_for(run, f"0.0.0.0:{gateway.port}")
    await run.event("gateway.ready")
    os.kill(former, signal.SIGCONT)
    assert {answer in ((200, "ok\n"), SILENT) for answer in await asyncio.gather(*in_line)} == {True}
    assert (await run.event("gateway.exited"))["pid"] == former
    listening = await run.event("gateway.listening")
    assert (listening["host"], listening["port"]) == ("0.0.0.0", gateway.port)
    assert await gateway.until_told("/livez") == "ok\n"
    await run.event("reload.finished")

    ask_for(run, f"localhost:{gateway.port}")
    assert (await run.event("gateway.listening"))["host"] == "127.0.0.1"
    await run.event("reload.finished")
    ask_for(run, f"127.0.0.1:{gateway.port}")  # the same place, by its number
    await run.event("reload.finished")
    assert run.count("gateway.listening") == 3
    assert await gateway.until_told("/livez") == "ok\n"
    assert await run.stop() == 0


async def test_no_other_child_holds_the_gateways_socket(runs):
    run, _ = await start(runs)
    await run.ready()
    gateway = (await run.event("gateway.ready"))["pid"]
    listening = listening_sockets()
    assert {pid for pid in children(run.pid) if listening & open_files(pid)} == {gateway}
    assert await run.stop() == 0


def open_files(pid):
    return {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}


def listening_sockets():
    """Of TCP, as /proc/PID/fd names them."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {f"socket:[{row[9]}]" for row in rows if row[3] == "0A"}
