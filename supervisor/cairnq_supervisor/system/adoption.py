"""Processes that became ours because their own parent died: they must be reaped, or they stay as zombies."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Collection
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_INIT = 1


def adopt_orphans() -> None:
    """From now on orphans below this process come to it and not to init. Process 1 of a container has them anyway."""
    if sys.platform == "linux" and os.getpid() != _INIT:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap_adopted(own: Collection[int]) -> list[int]:
    """Collect the ended ones among our children that are not in `own`; those have pidfds, and somebody who waits."""
    reaped = []
    for pid in _children():
        if pid not in own:
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG)[0] == pid:
                    reaped.append(pid)
    return reaped


def _children() -> list[int]:
    """Without /proc nobody is found: there orphans go to init as well."""
    me = os.getpid()
    try:
        return [int(word) for word in Path(f"/proc/{me}/task/{me}/children").read_text().split()]
    except OSError:
        return []
