"""The stacks of another process, also when its loop hangs: it writes them into memory that both have open."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal

from cairnq_supervisor.system import memory

_SIGNAL = signal.SIGUSR1
_MOST = 256 << 10
"""Bytes of a dump that are read."""


class StackBook:
    """Made before the fork. The child calls `offer`; the parent asks with `request` and, a moment later, reads."""

    def __init__(self) -> None:
        """Raises `OSError` when there is no descriptor left."""
        self.fd = memory.create("cairnq-stacks", 0)

    def offer(self) -> None:
        """In the child: answer from now on, from within the signal handler, whatever Python is doing."""
        faulthandler.register(_SIGNAL, file=self.fd, all_threads=True, chain=False)

    def request(self, pid: int) -> None:
        """In the parent: the file position is shared with the child, so that it writes from the start again."""
        os.ftruncate(self.fd, 0)
        os.lseek(self.fd, 0, os.SEEK_SET)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, _SIGNAL)

    def read(self) -> str:
        """What the child has written since the request."""
        return os.pread(self.fd, _MOST, 0).decode(errors="replace")

    def close(self) -> None:
        os.close(self.fd)
