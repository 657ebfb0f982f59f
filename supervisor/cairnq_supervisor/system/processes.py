"""A forked process in the parent's hands: its pidfd, its group, how it ended."""

from __future__ import annotations

import os
import resource
import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Ending:
    """How a process ended: exactly one of the two is set."""

    code: int | None = None
    signal: int | None = None

    @property
    def clean(self) -> bool:
        return self.code == 0

    def __str__(self) -> str:
        if self.signal is None:
            return f"exit code {self.code}"
        try:
            name = signal.Signals(self.signal).name
        except ValueError:
            name = "unknown"
        return f"signal {self.signal} ({name})"


@dataclass(frozen=True, slots=True)
class Process:
    """One child, the leader of its own process group. Its pid stays its own until `reap`."""

    pid: int
    pidfd: int

    def kill_group(self) -> None:
        """SIGKILL to the process and to every program that it started. Call it before `reap`."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def reap(self) -> Ending | None:
        """How it ended, None while it runs. The pidfd is closed with it."""
        seen = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOHANG)
        if seen is None:
            return None
        os.close(self.pidfd)
        if seen.si_code == os.CLD_EXITED:
            return Ending(code=seen.si_status)
        return Ending(signal=seen.si_status)


def resident_bytes(pid: int) -> int | None:
    """Memory of a process that is in RAM, None when it is gone or there is no /proc."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except (OSError, IndexError):
        return None
    return int(pages) * resource.getpagesize()


def own_bytes(pid: int) -> int | None:
    """Memory in RAM that no other process shares, None when the process is gone or the kernel does not say."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Private_"))
