"""The password of the database is nowhere to be read: not while the tree works, not when things go wrong."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.process.support import children, said_by
from tests.process.test_gateway import Gateway

SECRET = "hush-S3CRET"
CONFIG = """
app = "vault:registry"
lease = "5s"
drain_timeout = "5s"
http = "127.0.0.1:0"
[queues.default]
concurrency = 2
"""
VAULT = """
import os, subprocess
from pathlib import Path
from cairnq import Registry

registry = Registry()

@registry.task
def look(ctx, payload):
    "All that a handler, and a program that it starts, may find out about their environment."
    inherited = subprocess.run(["env"], capture_output=True, text=True, check=True).stdout
    return [dict(os.environ), inherited, Path("/proc/self/environ").read_text(errors="replace")]

@registry.task
def crash(ctx, payload):
    os.kill(os.getpid(), 9)
"""


def shown_by_the_kernel(pid):
    return "".join(Path(f"/proc/{pid}/{what}").read_text(errors="replace") for what in ("environ", "cmdline", "comm"))


@pytest.mark.parametrize("place", ["CAIRNQ_DSN", "dsn_file", "credential", "the file"])
async def test_the_password_is_nowhere_to_be_read(runs, client, database, proxy, tmp_path, monkeypatch, place):
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    dsn = proxy.dsn(database).replace("postgres@", f"postgres:{SECRET}@")
    config, environment = CONFIG, {"CAIRNQ_DSN": ""}
    (tmp_path / "vault.py").write_text(VAULT)
    match place:
        case "CAIRNQ_DSN":
            environment = {"CAIRNQ_DSN": dsn}
        case "the file":
            config = f'database = "{dsn}"\n{CONFIG}'
        case _:
            (tmp_path / "dsn").write_text(dsn)
            if place == "credential":
                environment["CREDENTIALS_DIRECTORY"] = str(tmp_path)
            else:
                config = f'dsn_file = "dsn"\n{CONFIG}'
    run = await runs.start(config, environment=environment)
    gateway = Gateway((await run.event("gateway.listening"))["port"])
    await run.ready()

    found = {"a handler": str((await client.wait((await client.submit("look")).id)).result)}
    found |= {f"process {pid}": shown_by_the_kernel(pid) for pid in [run.pid, *children(run.pid)]}
    crashed = await client.submit("crash", max_attempts=1)
    found["a crash"] = str((await client.wait(crashed.id)).error)
    if place == "CAIRNQ_DSN":
        found |= await in_an_outage(run, proxy, client, dsn)
    run.send(signal.SIGUSR1)
    await run.event("supervisor.status")
    found["status"] = await said_by(run, "status", "--json")
    found["metrics"] = str(await gateway.get("/metrics"))
    assert await run.stop() == 0
    found["log and events"] = run.transcript()
    assert [where for where, text in found.items() if SECRET in text] == []
    assert f'"pid": {run.pid}' in found["status"], "it was really asked"


async def in_an_outage(run, proxy, client, dsn):
    """What is said while the database is away, and by who examines it."""
    found = {"doctor": await said_by(run, "doctor", "--json", dsn=dsn)}
    proxy.refuse()
    await client.submit("look")
    await run.event("database.failed")
    found["check"] = await said_by(run, "check", dsn=dsn)
    proxy.pass_through()
    await run.event("database.recovered")
    return found
