"""The Dockerfile's steps, taken without Docker; and what they make, run as process 1, unprivileged, root read-only."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from cairnq import CairnQ
from tests.support.image import Image

ROOT = Path(__file__).parents[2]
APP = """
import os
from pathlib import Path
from cairnq import Registry

registry = Registry()

@registry.task
async def look(ctx, payload):
    found = {"uid": os.getuid(), "supervisor": os.getppid()}
    for folder in payload:
        try:
            Path(folder, "written").write_text("x")
            found[folder] = "writable"
        except OSError as error:
            found[folder] = error.strerror
    return found
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may make mounts and change the user"),
    pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare is not installed"),
    pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed"),
]


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    """A folder on the root file system that any user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="cairnq-image-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def image(root: Path) -> Image:
    interpreter = reachable_interpreter()
    (root / "base").mkdir()
    (root / "base" / "python3").symlink_to(interpreter)
    # The base image's Python has pip; this machine's may not, so it gets the one that runs the tests.
    pip = importlib.util.find_spec("pip")
    if pip is None or pip.origin is None:
        pytest.skip("the environment of the tests has no pip to install with")
    shutil.copytree(Path(pip.origin).parent, root / "pip/pip")
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "HTTP", "http"))}
    environment = {
        **kept,
        "PATH": f"{root}/base:/usr/local/bin:/usr/bin:/bin",
        "HOME": "/root",
        "PYTHONPATH": f"{root}/pip",
    }
    image = Image(root, ROOT, environment)
    image.build(ROOT / "deploy" / "Dockerfile")
    return image


def reachable_interpreter() -> Path:
    """One that every user of this machine may run."""
    for candidate in (Path(sys.base_prefix, "bin", "python3"), Path("/usr/bin/python3")):
        resolved = candidate.resolve()
        if candidate.exists() and all(parent.stat().st_mode & stat.S_IXOTH for parent in resolved.parents):
            asked = [candidate, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
            if subprocess.run(asked, check=False).returncode == 0:
                return resolved
    pytest.skip("no Python 3.11 or newer that an unprivileged user of this machine could run")


def in_container(image: Image, *command: str) -> list[str]:
    """The command line that runs `command` as a container's process 1 would run: its user, its mounts, nothing more."""
    uid, _, gid = image.user.partition(":")
    run = image.path("/run/cairnq")
    mounts = (
        "mount --make-rprivate / && mount -t tmpfs -o mode=1777 none /tmp && "
        f"mount -t tmpfs -o uid={uid},gid={gid},mode=700 none {run} && mount -o remount,bind,ro / && "
        f"cd {image.workdir} && exec setpriv --reuid={uid} --regid={gid} --clear-groups --no-new-privs "
        '--bounding-set=-all --inh-caps=-all "$@"'
    )
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", mounts, "sh", *command]


@pytest.fixture
def configured(image: Image, database: str) -> Image:
    """With an application on top and a configuration mounted."""
    for folder in ("/etc/cairnq", "/run/cairnq"):
        Path(image.path(folder)).mkdir(parents=True, exist_ok=True)
    Path(image.path("/app"), "tasks.py").write_text(APP)
    Path(image.path("/etc/cairnq"), "cairnq.toml").write_text(
        'app = "tasks:registry"\n[queues.default]\nprocesses = 2\n'
    )
    image.environment["CAIRNQ_DSN"] = database
    return image


def test_the_image_has_the_program_and_no_installer(configured: Image) -> None:
    assert configured.entrypoint == ["cairnq"]
    done = subprocess.run(
        in_container(configured, *configured.entrypoint, "--version"),
        env=configured.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("cairnq ")
    assert not Path(configured.path("/opt/cairnq/bin/pip")).exists()
    assert configured.user != "0:0"


def test_it_runs_as_process_1_and_drains_on_sigterm(configured: Image, database: str) -> None:
    command = in_container(configured, *configured.entrypoint, *configured.command)
    with subprocess.Popen(command, env=configured.environment, stderr=subprocess.PIPE, text=True) as outer:
        try:
            assert outer.stderr is not None
            events = (json.loads(line) for line in outer.stderr)
            seen = list(until(events, "supervisor.running"))
            assert next(event["pid"] for event in seen if event["event"] == "supervisor.starting") == 1
            folders = ["/", "/tmp", configured.path("/opt/cairnq"), configured.path("/run/cairnq")]
            found = asyncio.run(call(database, "look", folders))
            (inner,) = psutil.Process(outer.pid).children()
            inner.terminate()
            rest = list(events)
            assert rest[-1]["event"] == "supervisor.stopped"
            assert outer.wait() == 0
        finally:
            outer.kill()
    assert found == {
        "uid": int(configured.user.partition(":")[0]),
        "supervisor": 1,
        "/": "Read-only file system",
        "/tmp": "writable",
        configured.path("/opt/cairnq"): "Read-only file system",
        configured.path("/run/cairnq"): "writable",
    }


async def call(database: str, name: str, payload: Any) -> Any:
    async with CairnQ.postgres(database) as client:
        return await client.call(name, payload, timeout_ms=20_000)


def until(events, name):
    """The events up to the named one. The hang limit ends a wait for one that never comes."""
    for event in events:
        yield event
        if event["event"] == name:
            return
    raise AssertionError(f"the program ended before {name}")
