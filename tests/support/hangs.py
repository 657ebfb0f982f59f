"""What a hang looked like: the processes below this one, when a test ran into the time limit."""

from __future__ import annotations

import psutil


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
