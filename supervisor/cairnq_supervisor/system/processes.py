"""A forked process in the parent's hands: its pidfd, its group, how it ended."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass


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
