"""Whether the kernel killed somebody of this cgroup for want of memory since the last look."""

from __future__ import annotations

from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


class OomKills:
    """The count stands in the cgroup's `memory.events` (v2) or `memory.oom_control` (v1)."""

    def __init__(self, membership: Path = Path("/proc/self/cgroup"), root: Path = _ROOT) -> None:
        self._file = _find(membership, root)
        self._seen = self._count()

    def rose(self) -> bool:
        """False where the system does not tell."""
        before, self._seen = self._seen, self._count()
        return before is not None and self._seen is not None and self._seen > before

    def _count(self) -> int | None:
        if self._file is None:
            return None
        try:
            lines = self._file.read_text().splitlines()
        except OSError:
            return None
        return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)


def _find(membership: Path, root: Path) -> Path | None:
    try:
        entries = [line.split(":", 2) for line in membership.read_text().splitlines()]
    except OSError:
        return None
    for _, controllers, path in entries:
        own = path.lstrip("/")
        candidates = []
        if controllers == "":
            candidates = [root / own / "memory.events"]
        elif "memory" in controllers.split(","):
            candidates = [root / "memory" / own / "memory.oom_control", root / "memory" / "memory.oom_control"]
        for candidate in candidates:
            if candidate.is_file():
                return candidate
    return None
