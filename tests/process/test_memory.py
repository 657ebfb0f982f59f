"""A worker over its share is replaced before its cgroup is full, in a cgroup of the test's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

V1 = Path("/sys/fs/cgroup/memory")
LIMIT = 400 << 20
CONFIG = (
    'app = "gates:registry"\nlease = "2s"\ndrain_timeout = "10s"\n[queues.default]\nprocesses = 2\nconcurrency = 2\n'
)

pytestmark = pytest.mark.skipif(
    not (V1 / "memory.limit_in_bytes").exists() or not os.access(V1, os.W_OK),
    reason="no memory cgroup of version 1 that this user may make a child of",
)


@pytest.fixture
def cgroup():
    folder = V1 / f"cairnq-test-{os.getpid()}"
    folder.mkdir()
    (folder / "memory.limit_in_bytes").write_text(str(LIMIT))
    yield folder
    folder.rmdir()


async def test_the_greedy_worker_leaves_before_the_kernel_chooses(cgroup, runs, client):
    run = await runs.start(CONFIG)
    await run.ready()
    for pid in [run.pid, *run.pidfds]:
        (cgroup / "cgroup.procs").write_text(str(pid))
    task = await client.submit("hoard", 370)
    replacing = await run.event("worker.replacing")
    assert "over its share" in replacing["reason"]
    assert (await client.wait(task.id)).succeeded
    await run.event("worker.exited", pid=replacing["pid"])
    assert run.count("worker.died") == 0
    assert await run.stop() == 0
