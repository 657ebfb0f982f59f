"""How many cores this process may use: its affinity, and the quota of its cgroup."""

from __future__ import annotations

import math
import os
from pathlib import Path

_V2 = Path("/sys/fs/cgroup/cpu.max")
_V1 = Path("/sys/fs/cgroup/cpu")


def granted_cores() -> int:
    """At least 1."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota()
    return affinity if quota is None else max(1, min(affinity, math.ceil(quota)))


def _quota() -> float | None:
    """Cores that the cgroup grants, None where it sets no limit or is not readable."""
    try:
        limit, period = _V2.read_text().split()
    except (OSError, ValueError):
        return _quota_v1()
    return None if limit == "max" else int(limit) / int(period)


def _quota_v1() -> float | None:
    try:
        limit = int((_V1 / "cpu.cfs_quota_us").read_text())
        return None if limit < 0 else limit / int((_V1 / "cpu.cfs_period_us").read_text())
    except (OSError, ValueError):
        return None
