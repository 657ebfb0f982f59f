"""The wall clock against the clock that never steps."""

from __future__ import annotations

import time

from cairnq.pure.clock import boottime


def wall_offset() -> float:
    """Seconds from the origin of `boottime` to the epoch. It is every process's own until somebody sets the clock."""
    return time.time() - boottime()
