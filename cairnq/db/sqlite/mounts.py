"""On which filesystem a path lies, as Linux tells it. Elsewhere: not known."""

from __future__ import annotations

import os
import re
from pathlib import Path

_ESCAPE = re.compile(r"\\([0-7]{3})")


def filesystem_of(path: str, table: Path = Path("/proc/self/mountinfo")) -> str | None:
    """The type of the filesystem that holds `path` (`ext4`, `nfs4`), which need not exist yet; None: not known."""
    try:
        lines = table.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    best, found = -1, None
    for line in lines:
        before, _, after = line.partition(" - ")
        point = _ESCAPE.sub(lambda match: chr(int(match.group(1), 8)), before.split(" ")[4])
        if len(point) >= best and os.path.commonpath([point, path]) == point:  # of equals the last covers the others
            best, found = len(point), after.split(" ")[0]
    return found
