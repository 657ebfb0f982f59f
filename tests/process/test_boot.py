"""What is refused at the start, with which exit code, and what happens to signals before there is a fleet."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket

import psycopg
import pytest

from tests.process.support import descriptors, until

CONFIG = 'app = "gates:registry"\nlease = "5s"\n'
NOBODY = "postgresql://postgres@127.0.0.1:{port}/nothing"


def stderr(run):
    return run.log.read_text()


async def test_all_faults_of_the_configuration_are_listed_together_with_exit_78(runs):
    run = await runs.start('app = "gates"\nboot_timout = "1s"\n[queues.a]\nprocesses = 0\nconcurrency = "many"\n')
    assert await run.exit_code() == 78
    faults = stderr(run).splitlines()
    assert faults[0] == "cairnq: the configuration has 4 faults:"
    assert 'app is "gates"; it must be "module:attribute"' in faults[1]
    assert "boot_timout is not a key; did you mean 'boot_timeout'?" in faults[2]
    assert "queues.a.processes is 0; it must be a whole number from 1 to 256" in faults[3]
    assert 'queues.a.concurrency is "many"; it must be a whole number, 1 or more' in faults[4]
    assert all("cairnq-0.toml: " in fault for fault in faults[1:])


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("app = [", "is not TOML"),
        ('app = "nowhere:registry"', "No module named 'nowhere'"),
        ('app = "broken:registry"', "the license server said no"),
        ('app = "gates:handlers"', "module 'gates' has no 'handlers' (registries in it: registry)"),
        ('app = "plain:registry"', "is a dict, not a cairnq.Registry"),
        (CONFIG + '[queues.a]\nhandlers = ["nobody"]', "names 'nobody', which is not registered"),
        (CONFIG + "[resources]\ngpu = 1", "is not declared by the application (declared: none)"),
    ],
)
async def test_an_application_that_cannot_be_used_is_exit_78(runs, config, says):
    run = await runs.start(config)
    assert await run.exit_code() == 78
    assert says in stderr(run)
    assert "importlib" not in stderr(run)
    assert not re.search(r"supervisor.refused +cairnq:", stderr(run)), "the prefix of a command in a line of the log"


async def test_an_application_that_only_the_children_import_is_exit_78_too(runs):
    run = await runs.start('app = "broken:registry"\npreload = false\n[queues.a]\nprocesses = 2\n')
    assert await run.exit_code() == 78
    assert "the license server said no" in (await run.event("worker.boot-failed"))["reason"]


async def test_children_import_the_application_themselves_without_preload(runs, client):
    run = await runs.start(CONFIG + "preload = false\n")
    await run.ready()
    assert await client.call("echo", 7) == 7
    assert await run.stop() == 0


@pytest.mark.parametrize(
    ("dsn", "says"),
    [
        ("sqlite://cairnq.db", 'names no file; it must be "sqlite:///cairnq.db"'),
        ("sqlite:///:memory:", "must be a file, which all processes can open"),
        ("sqlite:////", "names no file"),
        ("nonsense", "the database URL does not parse"),
    ],
)
async def test_a_database_that_cannot_be_configured_is_exit_78(runs, dsn, says):
    run = await runs.start(CONFIG, dsn=dsn)
    assert await run.exit_code() == 78
    assert says in stderr(run)


@pytest.mark.parametrize("key", ["schema", "listen_database"])
async def test_what_is_postgresqls_alone_is_refused_where_no_database_is_named(runs, key):
    run = await runs.start(CONFIG + f'{key} = "postgresql://h/d"\n', environment={"CAIRNQ_DSN": "", "DATABASE_URL": ""})
    assert await run.exit_code() == 78
    assert f"{key} is for PostgreSQL alone" in stderr(run)
    assert "cairnq.db: set CAIRNQ_DSN" in stderr(run)


async def test_a_password_on_the_command_line_is_refused_and_not_repeated(runs):
    run = await runs.start(CONFIG, "--database", "postgresql://u:hush@h/d")
    assert await run.exit_code() == 78
    assert "--database carries a password" in stderr(run)
    assert "hush" not in stderr(run)


async def test_the_connection_string_comes_from_a_file_or_a_credential(runs, client, database, tmp_path):
    (tmp_path / "dsn").write_text(database + "\n")
    nothing = {"CAIRNQ_DSN": ""}
    for config, environment in (
        (CONFIG + 'dsn_file = "dsn"\n', nothing),
        (CONFIG, {**nothing, "CREDENTIALS_DIRECTORY": str(tmp_path)}),
        (CONFIG, {**nothing, "CAIRNQ_DATABASE": database}),
        (CONFIG + f'database = "{database}"\n', nothing),
        (CONFIG, {**nothing, "DATABASE_URL": database}),
    ):
        run = await runs.start(config, environment=environment)
        await run.ready()
        assert await run.stop() == 0


async def test_a_wrong_command_line_is_exit_64(runs):
    run = await runs.start(CONFIG, "--queue", "a=2")
    assert await run.exit_code() == 64
    assert "two whole numbers" in stderr(run)


async def test_flags_override_the_file(runs):
    run = await runs.start(CONFIG + "[queues.a]\n[queues.b]\n", "--queue", "a=2:3", "--log", "json")
    await run.ready()
    started = [(event["queue"], event["slot"]) for event in run.heard if event["event"] == "worker.ready"]
    assert sorted(started) == [("a", 0), ("a", 1)]
    assert await run.stop() == 0
    assert stderr(run).startswith('{"time": ')


@pytest.fixture
def fifo(tmp_path):
    """A file that is never read to its end."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return str(path)


@pytest.fixture
def closed_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


async def test_an_unreachable_database_is_exit_75_after_connect_timeout(runs, closed_port):
    run = await runs.start(CONFIG + 'connect_timeout = "1s"\n', dsn=NOBODY.format(port=closed_port))
    assert await run.exit_code() == 75
    await run.event("database.awaited")
    assert run.count("keeper.started") == 0
    assert str(closed_port) in stderr(run)


async def test_a_database_that_comes_up_within_connect_timeout_is_waited_for(runs, proxy, database):
    proxy.refuse()
    run = await runs.start(CONFIG, dsn=proxy.dsn(database))
    await run.event("database.awaited")
    proxy.pass_through()
    await run.ready()
    assert await run.stop() == 0


async def test_another_protocol_version_is_exit_76(runs, database):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("update cairnq_meta set value = '2' where key = 'protocol_version'")
    run = await runs.start(CONFIG)
    assert await run.exit_code() == 76
    assert "speaks cairnq protocol '2'" in stderr(run)


async def test_another_schema_is_exit_76(runs, database):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create schema elsewhere; alter table cairnq_tasks set schema elsewhere")
    run = await runs.start(CONFIG)
    assert await run.exit_code() == 76
    assert "elsewhere" in stderr(run)


@pytest.mark.fault(row=1)
@pytest.mark.fault(row=4)
async def test_workers_that_cannot_become_ready_are_killed_and_after_three_times_it_is_exit_69(runs, fifo):
    config = CONFIG.replace("gates", "slow") + 'preload = false\nboot_timeout = "300ms"\n'
    run = await runs.start(config, environment={"SLOW_IMPORT": fifo})
    assert await run.exit_code() == 69
    assert run.count("worker.killed", reason="not ready within boot_timeout") == 3
    assert run.count("worker.flapping") == 1
    await run.event("supervisor.gave-up", code=69)


@pytest.mark.fault(row=3)
async def test_term_during_the_import_is_exit_0_with_nothing_forked(runs, fifo):
    run = await runs.start(CONFIG.replace("gates", "slow"), environment={"SLOW_IMPORT": fifo})
    await run.event("supervisor.starting")
    run.send(signal.SIGTERM)
    assert await run.exit_code() == 0
    assert run.count("keeper.started") == 0


async def test_signals_that_steer_change_nothing_during_the_import(runs, fifo):
    run = await runs.start(CONFIG.replace("gates", "slow"), environment={"SLOW_IMPORT": fifo})
    await run.event("supervisor.starting")
    for number in (signal.SIGHUP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGTSTP, signal.SIGCONT, signal.SIGUSR1):
        run.send(number)
    writer = os.open(fifo, os.O_RDWR)
    await until(lambda: fifo in descriptors(run.pid))
    os.close(writer)
    await run.ready()
    assert await run.stop() == 0


async def test_term_while_waiting_for_the_database_is_exit_0(runs, closed_port):
    run = await runs.start(CONFIG, dsn=NOBODY.format(port=closed_port))
    await run.event("database.awaited")
    run.send(signal.SIGTERM)
    assert await run.exit_code() == 0


@pytest.mark.parametrize(
    "moment", ["supervisor.starting", "application.loaded", "database.checked", "keeper.started", "worker.started"]
)
@pytest.mark.fault(row=3)
async def test_term_at_any_moment_of_the_start_is_exit_0_and_nothing_is_claimed(runs, client, moment):
    await client.submit("echo")
    run = await runs.start(CONFIG + "[queues.default]\nprocesses = 4\n")
    await run.event(moment)
    run.send(signal.SIGTERM)
    assert await run.exit_code() == 0


@pytest.mark.fault(row=3)
async def test_term_while_workers_boot_ends_them_without_a_claim(runs, client, fifo):
    task = await client.submit("echo")
    run = await runs.start(CONFIG.replace("gates", "slow") + "preload = false\n", environment={"SLOW_IMPORT": fifo})
    await run.event("worker.started")
    run.send(signal.SIGTERM)
    assert await run.exit_code() == 0
    assert (await client.get(task.id)).attempt == 0


async def test_threads_before_the_fork_are_counted_and_named(runs):
    run = await runs.start(CONFIG.replace("gates", "threaded"))
    warning = await run.event("supervisor.threads", count=2)
    assert warning["level"] == "warning"
    assert "threaded:registry: metrics-pusher" in warning["likely"]
    await run.ready()
    assert await run.stop() == 0


async def test_the_connections_of_this_host_are_compared_with_what_the_server_allows(runs):
    run = await runs.start(CONFIG + "[queues.a]\nprocesses = 2\n")
    assert (await run.event("database.connections"))["says"].startswith("4 at rest, ")
    await run.ready()
    assert await run.stop() == 0
    many = await runs.start(CONFIG + "[queues.a]\nprocesses = {min = 1, max = 250}\n")
    short = await many.event("database.connections-short")
    assert short["says"].startswith("252 at rest, ")
    assert "max_connections" in short["advice"]
    await many.ready()
    assert await many.stop() == 0


@pytest.mark.fault(row=4)
async def test_a_queue_that_cannot_boot_leaves_a_healthy_one_alone(runs, client):
    config = CONFIG.replace("gates", "moody") + "preload = false\n[queues.default]\n[queues.ill]\n"
    run = await runs.start(config)
    await run.event("worker.ready", queue="default")
    await run.event("worker.flapping", queue="ill")
    assert await client.call("echo", 1) == 1
    assert run.count("worker.died", queue="default") == 0
    assert await run.stop() == 0


async def test_an_events_descriptor_that_is_not_open_is_exit_64(runs):
    run = await runs.start(CONFIG, "--events-fd", "99")
    assert await run.exit_code() == 64
    assert "--events-fd 99" in stderr(run)


@pytest.mark.fault(row=22)
async def test_two_cold_starts_on_an_empty_database_both_come_up(runs, empty_database):
    fleets = await asyncio.gather(*(runs.start(CONFIG, dsn=empty_database) for _ in range(2)))
    for run in fleets:
        await run.ready()
    for run in fleets:
        assert await run.stop() == 0
