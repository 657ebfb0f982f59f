"""A real systemd, in user mode and namespaces of its own, for tests of the units. Needs root and systemd's cgroup."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

PROGRAM = Path("/lib/systemd/systemd")
CGROUPS = Path("/sys/fs/cgroup/systemd")
START_TIMEOUT = 60.0
END_TIMEOUT = 60.0
"""Seconds that processes which it leaves behind may take to die."""

_SETUP = """
set -e
echo $$ > "$CGROUP/cgroup.procs"
exec unshare --mount --cgroup sh -ec '
    mount --make-rprivate /
    mount -t tmpfs none /run
    mkdir -p /run/own /run/systemd/system "$XDG_RUNTIME_DIR"
    mount --bind "$CGROUP" /run/own
    mount -t tmpfs none /sys/fs/cgroup
    mkdir /sys/fs/cgroup/systemd
    mount --move /run/own /sys/fs/cgroup/systemd
    is_alone() { read -r first && [ "$first" = $$ ] && ! read -r other; }
    is_alone < /sys/fs/cgroup/systemd/cgroup.procs || { echo "the cgroup is not its own" >&2; exit 1; }
    exec /lib/systemd/systemd --user
'
"""
"""A systemd gathers whoever is in the cgroup that it takes for the root into its own scope, in each hierarchy that it
sees. So it is to see one, and of that one its own cgroup alone: all others lie under a file system that is empty.
"""


def hierarchies() -> list[Path]:
    """The roots of all hierarchies of cgroups, of both versions."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [Path(place) for _, place, kind, *_ in mounts if kind in ("cgroup", "cgroup2")]


def missing() -> str | None:
    """Why there can be none here; None: there can."""
    if os.geteuid() != 0:
        return "only root may make the namespaces that a systemd of the test's own needs"
    for program in ("unshare", "nsenter", "systemctl"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    if not PROGRAM.exists():
        return "systemd is not installed"
    if CGROUPS not in hierarchies() or not os.access(CGROUPS, os.W_OK):
        return f"{CGROUPS} is no hierarchy of cgroups, or not writable"
    return None


class ServiceManager:
    """Units are files in `units`; `systemctl` talks to it. Close it in any case."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="cairnq-systemd-"))
        self.units = self.home / ".config" / "systemd" / "user"
        self.units.mkdir(parents=True)
        self._cgroup = CGROUPS / self.home.name
        self._cgroup.mkdir()
        environment = {**os.environ, "CGROUP": str(self._cgroup)}
        self._environment = {**environment, "HOME": str(self.home), "XDG_RUNTIME_DIR": "/run/user/cairnq"}
        self._environment.pop("NOTIFY_SOCKET", None)
        self._log = (self.home / "log").open("wb")
        self._process = subprocess.Popen(["sh", "-c", _SETUP], env=self._environment, stderr=self._log)
        self._await_start()

    def systemctl(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments), env=self._environment, capture_output=True, text=True, check=False
        )

    def command(self, *arguments: str) -> Sequence[str]:
        """The whole command line, for one that is to run beside the test."""
        inside = ["nsenter", f"--target={self._process.pid}", "--mount", "--cgroup"]
        return [
            *inside,
            "env",
            *(f"{n}={self._environment[n]}" for n in ("HOME", "XDG_RUNTIME_DIR")),
            "systemctl",
            "--user",
            *arguments,
        ]

    def show(self, unit: str, *names: str) -> list[str]:
        """The values of these properties."""
        said = self.systemctl("show", unit, *(f"--property={name}" for name in names)).stdout
        found = dict(line.split("=", 1) for line in said.splitlines())
        return [found[name] for name in names]

    def close(self) -> None:
        if self._process.poll() is None:  # or its number may be another's by now
            self.systemctl("kill", "--signal=KILL", "*.service")
            self._process.terminate()
        self._process.wait()
        self._log.close()
        for folder in (*sorted(self._cgroup.rglob("*/"), reverse=True), self._cgroup):
            _remove(folder)
        shutil.rmtree(self.home)

    def _await_start(self) -> None:
        """It says nothing when it is there: ask until it answers."""
        deadline = time.monotonic() + START_TIMEOUT
        while self.systemctl("is-system-running").stdout.strip() not in ("running", "degraded"):
            if time.monotonic() > deadline or self._process.poll() is not None:
                said = (self.home / "log").read_text()
                self.close()
                raise AssertionError(f"systemd did not start:\n{said}")


def _remove(cgroup: Path) -> None:
    """Once its last process is gone, which this version of cgroups tells nobody: look until it is."""
    deadline = time.monotonic() + END_TIMEOUT
    while True:
        try:
            return cgroup.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            if time.monotonic() > deadline:
                left = (cgroup / "cgroup.procs").read_text().split()
                raise AssertionError(f"still in {cgroup}: {', '.join(left)}") from error
        time.sleep(0.05)  # sleep: between two looks
