"""The stacks of another process, also when its loop hangs: it writes them into memory that both have open."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Iterator
from itertools import islice
from types import FrameType

from cairnq_supervisor.system import memory

_SIGNAL = signal.SIGUSR1
_MOST = 256 << 10
"""Bytes of a dump that are read."""
_DEEPEST = 100
"""Frames of a thread, as `faulthandler` has it."""


class StackBook:
    """Made before the fork. The child calls `offer`; the parent asks with `request` and, a moment later, reads."""

    def __init__(self) -> None:
        """Raises `OSError` when there is no descriptor left."""
        self.fd = memory.create("cairnq-stacks", 0)

    def offer(self) -> None:
        """In the child, on its main thread: answer from now on.

        One stack is written from within the signal handler, whatever Python is doing; in its place those of all threads
        as soon as Python can. Not all of them from within: `faulthandler` walks them without a lock, and a thread that
        begins or ends in that moment ends the process (SIGSEGV).
        """
        signal.signal(_SIGNAL, self._write_all)
        faulthandler.register(_SIGNAL, file=self.fd, all_threads=False, chain=True)

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

    def _write_all(self, _number: int, interrupted: FrameType | None) -> None:
        """The main thread first, which this interrupts."""
        here = threading.get_ident()
        frames = sys._current_frames()  # noqa: SLF001 - the documented way to other threads' stacks
        others = [_shown("Thread", thread, frame) for thread, frame in frames.items() if thread != here]
        text = "\n".join([_shown("Current thread", here, interrupted), *others]).encode(errors="replace")
        os.pwrite(self.fd, text, 0)
        os.ftruncate(self.fd, len(text))


def _shown(title: str, thread: int, frame: FrameType | None) -> str:
    """As `faulthandler` writes it."""
    lines = [
        f'  File "{one.f_code.co_filename}", line {one.f_lineno} in {one.f_code.co_name}\n'
        for one in islice(_stack(frame), _DEEPEST)
    ]
    return f"{title} {thread:#018x} (most recent call first):\n{''.join(lines)}"


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
