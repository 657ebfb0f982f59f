"""The fork: what must happen in which order so that a child inherits nothing that is not its own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable

from cairnq_supervisor.system import signals
from cairnq_supervisor.system.descriptors import Descriptors
from cairnq_supervisor.system.processes import Process
from cairnq_supervisor.system.title import show_title

_PR_SET_PDEATHSIG = 1
_CRASHED = 70
_LAST_MOMENT = 0.05
"""Seconds. Python lets go of a thread before the system does, by microseconds where it is not busy."""

_libc = ctypes.CDLL(None, use_errno=True)


class SpawnError(Exception):
    """The system refused the fork or what a fork needs (processes, descriptors, memory)."""


def spawn(run: Callable[[], int], *, title: str, descriptors: Descriptors) -> Process:
    """Fork a child that calls `run`, exits with what it returns, and keeps none of the supervisor's own `descriptors`.

    Call it from the main thread: PR_SET_PDEATHSIG follows the forking thread. Raises `SpawnError`.
    """
    parent = os.getpid()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signals.HANDLED | {signals.ORPHANED})
    try:
        pid = os.fork()
        if pid == 0:
            _live(run, parent=parent, title=title, descriptors=descriptors)
        return _adopt(pid)
    except OSError as error:
        raise SpawnError(f"fork: {error}") from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _adopt(pid: int) -> Process:
    """The parent's half. A child that cannot be watched is not kept."""
    with contextlib.suppress(PermissionError, ProcessLookupError):  # the child did it first, or has gone
        os.setpgid(pid, pid)
    try:
        return Process(pid, os.pidfd_open(pid))
    except OSError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def _live(run: Callable[[], int], *, parent: int, title: str, descriptors: Descriptors) -> None:
    """The child's half. It never returns into the parent's stack, whatever happens."""
    code = _CRASHED
    try:
        signal.set_wakeup_fd(-1)  # or this process's signals would be written into the parent's pipe
        for number in signals.HANDLED:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signals.ORPHANED, lambda _signum, _frame: os._exit(0))
        os.setpgid(0, 0)
        _die_with(parent)
        descriptors.close_in_child()
        _detach_input()
        show_title(title)
        signals.ignore_in_child()
        signals.unblock()
        code = run()
    except BaseException:  # noqa: BLE001 - the border of the child: nothing may unwind into the parent's stack
        traceback.print_exc()
    finally:
        _flush()
        os._exit(code)


def _die_with(parent: int) -> None:
    """Have the kernel tell us when the supervisor dies; leave if it already has."""
    if sys.platform == "linux" and _libc.prctl(_PR_SET_PDEATHSIG, int(signals.ORPHANED), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        os._exit(0)


def _detach_input() -> None:
    """A child outside the terminal's foreground group would be stopped by a read from it."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # closed, or nobody reads it: no reason to stay
            stream.flush()


def thread_count() -> int:
    """Operating system threads of this process. One that was joined may not be gone yet: it is given a moment."""
    deadline = time.monotonic() + _LAST_MOMENT
    while True:
        try:
            count = len(os.listdir("/proc/self/task"))
        except FileNotFoundError:
            return threading.active_count()
        if count <= threading.active_count() or time.monotonic() > deadline:
            return count
        time.sleep(_LAST_MOMENT / 50)
