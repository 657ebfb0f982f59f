"""How much memory this process's cgroup grants, and how much of it is taken."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_UNLIMITED = 1 << 60
"""Bytes: version 1 says "no limit" with a number near 2^63."""


@dataclass(frozen=True, slots=True)
class MemoryGrant:
    """Bytes. `used` leaves out file pages that the kernel drops when it needs room."""

    limit: int
    used: int


def memory_grant(root: Path = _ROOT, own: Path = _OWN) -> MemoryGrant | None:
    """None where the cgroup sets no limit, or cannot be read."""
    for folder, limit, used, droppable in _places(root, own):
        try:
            most = int((folder / limit).read_text())  # "max" is no number: no limit
            taken = int((folder / used).read_text()) - _stat(folder / "memory.stat", droppable)
        except (OSError, ValueError):
            continue
        if most < _UNLIMITED:
            return MemoryGrant(most, taken)
    return None


def _places(root: Path, own: Path) -> list[tuple[Path, str, str, str]]:
    """This process's own cgroup in both versions; inside a container it is mounted as the root."""
    try:
        lines = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:
        lines = []
    unified = [path for number, _, path in lines if number == "0"]
    memory = [path for _, controllers, path in lines if "memory" in controllers.split(",")]
    v2 = [root / path.lstrip("/") for path in unified] + [root]
    v1 = [root / "memory" / path.lstrip("/") for path in memory] + [root / "memory"]
    return [
        *((folder, "memory.max", "memory.current", "inactive_file") for folder in v2),
        *((folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file") for folder in v1),
    ]


def _stat(path: Path, name: str) -> int:
    facts = dict(line.split() for line in path.read_text().splitlines())
    return int(facts.get(name, 0))
