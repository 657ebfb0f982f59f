"""The embedded default: a fleet on one SQLite file, from an empty folder on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cairnq import CairnQ
from tests.process.support import children, descriptors

NO_DATABASE = {"CAIRNQ_DSN": "", "DATABASE_URL": ""}
TWO = """
app = "gates:registry"
lease = "5s"
poll = "10m"
[queues.default]
processes = 2
concurrency = 4
"""


@pytest.fixture
def server():
    """No PostgreSQL is needed here: each test has a file in its own folder."""


@pytest.fixture
def database(tmp_path):
    return str(tmp_path / "cairnq.db")


def cairnq(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CAIRNQ_", "DATABASE_"))}
    command = [sys.executable, "-m", "cairnq_supervisor", *arguments]
    return subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, check=False, timeout=100)


async def test_an_empty_folder_becomes_a_running_fleet_with_two_commands(runs, tmp_path):
    assert cairnq(tmp_path, "init").returncode == 0
    run = await runs.start(tmp_path / "cairnq.toml", environment=NO_DATABASE)
    await run.ready()
    submitted = cairnq(tmp_path, "submit", "greet", '{"name": "world"}', "--wait")
    assert (submitted.returncode, json.loads(submitted.stdout)) == (0, {"text": "hello, world"})
    status = json.loads(cairnq(tmp_path, "status", "--json").stdout)
    assert status["supervisor"]["database"] == str(tmp_path / "cairnq.db")
    assert await run.stop() == 0
    for command, says in (("check", "'main' is current"), ("doctor", "the watch on the file delivers")):
        said = cairnq(tmp_path, command)
        assert (said.returncode, said.stderr) == (0, ""), said.stdout
        assert says in said.stdout
    assert "nothing to do" in cairnq(tmp_path, "migrate").stdout


async def test_a_file_may_be_named_by_its_absolute_path(runs, tmp_path):
    (tmp_path / "data").mkdir()
    run = await runs.start(TWO, dsn=f"sqlite:///{tmp_path}/data/shop.db")
    await run.ready()
    async with CairnQ.sqlite(tmp_path / "data" / "shop.db") as client:
        assert await client.call("echo", 1) == 1
    assert await run.stop() == 0


async def test_a_submit_of_another_process_is_picked_up_by_the_watch_alone(runs, gate, database):
    """Workers poll every ten minutes here: what is picked up at all was seen by the watch."""
    run = await runs.start(TWO)
    await run.event("keeper.listening")
    await run.ready()
    async with CairnQ.sqlite(database) as client:
        for _ in range(21):
            task = await client.submit("gated", gate.path)
            arrival = await gate.arrival()
            arrival.let_go()
            await client.wait(task.id)
    assert await run.stop() == 0


async def test_the_supervisor_holds_no_connection_and_each_child_opens_its_own(runs, database):
    run = await runs.start(TWO)
    await run.event("keeper.listening")
    await run.ready()
    async with CairnQ.sqlite(database) as client:
        assert await client.call("echo", 1) == 1
    assert not [fd for fd in descriptors(run.pid) if fd.startswith(database)]
    assert len(list(Path(f"/proc/{run.pid}/task").iterdir())) == 1
    openers = [pid for pid in children(run.pid) if any(fd.startswith(database) for fd in descriptors(pid))]
    assert len(openers) >= 2
    assert run.count("supervisor.threads") == 0
    assert await run.stop() == 0


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.mkdir(), "is a directory"),
        (lambda path: path.write_bytes(b"no database" * 1000), "is not an SQLite database"),
        (lambda path: path.parent.rmdir(), "does not exist: make it"),
        pytest.param(
            lambda path: (path.touch(), path.chmod(0o400)),
            "may read",
            marks=pytest.mark.skipif(os.geteuid() == 0, reason="root may write every file"),
        ),
    ],
)
async def test_a_path_that_can_hold_no_database_is_exit_78_at_once(runs, tmp_path, make, says):
    folder = tmp_path / "data"
    folder.mkdir()
    make(folder / "shop.db")
    run = await runs.start(TWO, dsn=f"sqlite:///{folder}/shop.db")
    assert await run.exit_code() == 78
    assert says in run.log.read_text()


async def test_a_file_replaced_under_the_fleet_is_an_event_and_nothing_is_written_to_it(runs, database, tmp_path):
    run = await runs.start(TWO.replace('"10m"', '"100ms"'))
    await run.ready()
    async with CairnQ.sqlite(database) as client:
        done = await client.submit("echo", 1)
        await client.wait(done.id)
    for end in ("", "-wal", "-shm"):
        Path(database + end).rename(tmp_path / f"moved.db{end}")
    async with CairnQ.sqlite(database) as client:
        await client.submit("echo", 2)
    failed = await run.event("database.failed")
    assert "is no longer the file that was opened" in failed["error"]
    await run.event("keeper.listen-lost")
    assert await run.stop() == 0
    async with CairnQ.sqlite(database) as client:
        assert (await client.stats())["default"]["queued"] == 1
    async with CairnQ.sqlite(tmp_path / "moved.db") as client:
        assert (await client.get(done.id)).succeeded
