"""Names of queues, handlers and keys that would break a line, steer a terminal or end a label, all the way through."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from cairnq_supervisor.pure.printable import printable
from tests.process.support import children, said_by
from tests.process.test_gateway import Gateway

NAME = "a'b\"c\\d\n00:00:00.000 info    forged \x1b[2J\x1b]0;title\x07\u202eright\u200b\ue000 " + "x" * 300
APP = f"""
import os
from cairnq import Registry, TaskError

registry = Registry()

async def fine(ctx, payload):
    return payload

async def failing(ctx, payload):
    raise TaskError({NAME!r}, code={NAME!r})

registry.register({NAME!r}, fine)
registry.register({NAME + "!"!r}, failing)
"""


async def test_no_name_breaks_a_line_a_label_a_title_or_a_terminal(runs, client, tmp_path, monkeypatch):
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    (tmp_path / "odd.py").write_text(APP)
    run = await runs.start(f'app = "odd:registry"\nhttp = "127.0.0.1:0"\n[queues.{json.dumps(NAME)}]\n')
    gateway = Gateway((await run.event("gateway.listening"))["port"])
    await run.ready()
    done = await client.submit(NAME, NAME, queue=NAME, key=NAME, correlation_id=NAME)
    assert (await client.wait(done.id)).result == NAME
    failed = await client.submit(NAME + "!", queue=NAME, max_attempts=1)
    assert (await client.wait(failed.id)).failed
    await run.event("task.failed")
    labels = {"name": printable(NAME), "queue": printable(NAME)}
    await gateway.until("cairnq_tasks_ended_total", 1, **labels, outcome="succeeded")
    run.send(signal.SIGUSR1)
    await run.event("supervisor.status")
    shown = {f"title of {pid}": title(pid) for pid in [run.pid, *children(run.pid)]}
    shown["status"] = await said_by(run, "status")
    shown["status --json"] = await said_by(run, "status", "--json")
    _, shown["metrics"] = await gateway.get("/metrics")
    run.send(signal.SIGTERM)
    assert await run.exit_code() == 0
    shown["log"] = run.log.read_text()
    for where, text in shown.items():
        assert all(line.isprintable() for line in text.split("\n")), where
        assert not any(line.startswith("00:00:00.000") for line in text.split("\n")), where
    assert json.loads(shown["status --json"])["queues"][0]["name"] == NAME


def title(pid):
    return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0")
