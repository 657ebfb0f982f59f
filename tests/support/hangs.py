"""What a hang looked like: the processes below this one, when a test ran into the time limit."""

from __future__ import annotations

import signal
from types import FrameType

import psutil
import pytest


def show_processes_on_alarm(item: pytest.Item) -> None:
    """Goes before pytest-timeout's handler: the tree as it was, not as the failing test's cleanup left it."""
    fail = signal.getsignal(signal.SIGALRM)
    if not callable(fail):  # the limit is kept by a thread
        return

    def on_alarm(number: int, frame: FrameType | None) -> None:
        __tracebackhide__ = True
        item.add_report_section("hang", "processes", process_tree())
        fail(number, frame)

    signal.signal(signal.SIGALRM, on_alarm)


def process_tree() -> str:
    """One line for each descendant of this process: depth, pid, state, age of its CPU time, command."""
    return "\n".join(_lines(psutil.Process(), 0))


def _lines(process: psutil.Process, depth: int) -> list[str]:
    lines = [f"{'  ' * depth}{_describe(process)}"]
    for child in process.children():
        lines += _lines(child, depth + 1)
    return lines


def _describe(process: psutil.Process) -> str:
    try:
        with process.oneshot():
            cpu = process.cpu_times()
            command = " ".join(process.cmdline()) or process.name()
            return f"{process.pid} {process.status()} cpu={cpu.user + cpu.system:.2f}s {command[:200]}"
    except psutil.NoSuchProcess:
        return f"{process.pid} gone"
