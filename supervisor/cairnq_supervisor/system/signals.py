"""Signals as bytes in a pipe that the selector watches; and what they mean before there is a selector."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from types import FrameType

HANDLED = frozenset(
    {
        signal.SIGTERM,
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGHUP,
        signal.SIGTTIN,
        signal.SIGTTOU,
        signal.SIGTSTP,
        signal.SIGCONT,
        signal.SIGUSR1,
        signal.SIGCHLD,
    }
)
ORPHANED = signal.SIGUSR2
"""What the kernel sends to a child whose supervisor died."""

ENDING = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGQUIT})


def block() -> None:
    """Hold every handled signal back. The first thing that the program does."""
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)


def unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED | {ORPHANED})


def end_at_once(leave: Callable[[int], None]) -> None:
    """While nothing is forked yet: an ending signal calls `leave(signum)`, which must not return.

    Those that steer a running supervisor have nothing to steer yet, and must not end or stop it.
    """
    for number in HANDLED - ENDING - {signal.SIGCHLD}:
        signal.signal(number, _noted)
    for number in ENDING:
        signal.signal(number, lambda signum, _frame: leave(signum))
    unblock()


def _noted(_signum: int, _frame: FrameType | None) -> None:
    """The byte in the wakeup pipe says it all."""


def ignore_in_child() -> None:
    """A stray signal to a child changes nothing. Not SIG_IGN, which the programs that handlers start would inherit."""
    for number in HANDLED - {signal.SIGCHLD}:
        signal.signal(number, _noted)


class SignalPipe:
    """Turns handled signals into readable bytes. Make it with signals blocked; it leaves them unblocked."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in HANDLED:
            signal.signal(number, _noted)
        unblock()

    @property
    def descriptors(self) -> tuple[int, int]:
        return self._reader, self._writer

    def fileno(self) -> int:
        return self._reader

    def read(self) -> list[signal.Signals]:
        """What arrived since the last call, in order. Numbers that are not ours are left out."""
        arrived = bytearray()
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self._reader, 4096):
                arrived += piece
        return [signal.Signals(number) for number in arrived if number in HANDLED]

    def close(self) -> None:
        signal.set_wakeup_fd(-1)
        os.close(self._reader)
        os.close(self._writer)
