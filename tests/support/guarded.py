"""Start and stop a server process under its guard; who it runs as when the tests run as root."""

from __future__ import annotations

import os
import pwd
import selectors
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

GUARD = Path(__file__).with_name("guard.py")
START_TIMEOUT = 60.0
"""Seconds that a server may take to say that it is ready. A loaded two-core machine needs 2."""


class ServerDidNotStart(RuntimeError):
    """Holds the end of the server's log."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The user that servers run as: PostgreSQL and PgBouncer both refuse to be root."""

    name: str | None  # None: whoever runs the tests
    uid: int
    gid: int

    @property
    def options(self) -> dict[str, Any]:
        """For `subprocess`: become this user."""
        return {} if self.name is None else {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, path: Path) -> None:
        if self.name is not None:
            os.chown(path, self.uid, self.gid)


def server_identity() -> Identity:
    if os.geteuid() != 0:
        return Identity(None, os.geteuid(), os.getegid())
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Identity(name, entry.pw_uid, entry.pw_gid)
    raise RuntimeError("running as root, and there is no user `postgres` or `nobody` for the server to run as")


@dataclass(slots=True)
class Guarded:
    """One server process. It dies with this process, however that ends."""

    command: list[str]
    ready: str
    log: Path
    identity: Identity
    remove: list[Path] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    pid: int | None = None
    _guard: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Returns when the server's log says that it accepts connections."""
        arguments = [sys.executable, "-I", str(GUARD), "--ready", self.ready, "--log", str(self.log)]
        if self.identity.name is not None:
            arguments += ["--user", str(self.identity.uid), "--group", str(self.identity.gid)]
        for folder in self.remove:
            arguments += ["--remove", str(folder)]
        self._guard = subprocess.Popen(
            [*arguments, "--", *self.command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "LC_ALL": "C", **self.environment},
        )
        line = self._hear(START_TIMEOUT)
        if not line.startswith("ready "):
            self.close()
            raise ServerDidNotStart(f"{self.command[0]} did not start ({line.strip() or 'no word'}):\n{self.tail()}")
        self.pid = int(line.split()[1])

    @property
    def has_ended(self) -> bool:
        """Whether the server is gone, and its guard after it."""
        return self._guard is None or self._guard.poll() is not None

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Signals the server and returns when it has ended. Its files stay unless they were to be removed."""
        if self.pid is not None:
            os.kill(self.pid, how)
            self._reap()

    def close(self) -> None:
        """Ends the server the hard way, if it still runs, and removes its files."""
        if self._guard is not None:
            assert self._guard.stdin is not None
            self._guard.stdin.close()
            self._reap()

    def tail(self, lines: int = 20) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""

    def _hear(self, timeout: float) -> str:
        assert self._guard is not None
        assert self._guard.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._guard.stdout, selectors.EVENT_READ)
            return self._guard.stdout.readline() if selector.select(timeout) else ""

    def _reap(self) -> None:
        assert self._guard is not None
        assert self._guard.stdin is not None
        assert self._guard.stdout is not None
        self._guard.stdout.read()
        self._guard.wait()
        self._guard.stdin.close()
        self._guard.stdout.close()
        self._guard, self.pid = None, None
