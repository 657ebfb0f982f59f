"""Variables that nobody may read after the start: not a child, not a child's program, not /proc/PID/environ."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

_ENV_START, _ENV_END = 47, 48  # fields 50 and 51 of /proc/PID/stat, counted from the one after the name


def forget(names: Iterable[str]) -> None:
    """Take the variables out of the environment and out of the block that the kernel shows.

    Call it before the title of the process is set for the first time: that moves the environment elsewhere.
    """
    for name in names:
        value = os.environ.pop(name, None)
        if value is not None:
            _scrub(f"{name}={value}".encode(errors="surrogateescape"))


def _scrub(entry: bytes) -> None:
    """`os.environ.pop` removed the pointer to it; the bytes are still there."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = int(fields[_ENV_START]), int(fields[_ENV_END])
    except (OSError, ValueError, IndexError):
        return  # no /proc, so that nobody can look there either
    if not 0 < start < end:
        return
    found = ctypes.string_at(start, end - start).find(entry + b"\0")
    if found >= 0:
        ctypes.memset(start + found, 0, len(entry))
