"""Refuses tests that wait on time: `sleep(` on a line that does not say why.

`python -m tests.support.nosleep FOLDER...`: prints each such line and ends with 1. A reason is a comment
`# sleep: why` on the same line. `sleep(0)` yields and waits for nothing; it needs none.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

_SLEEP = re.compile(r"(?<![A-Za-z])sleep\((?!0\))")
_REASON = re.compile(r"# sleep: \S+")


def offences(path: Path) -> Iterator[tuple[int, str]]:
    """Line number and text of each unexplained sleep in one file."""
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        if _SLEEP.search(line) and not _REASON.search(line):
            yield number, line.strip()


def main(folders: list[str]) -> int:
    found = [
        f"{path}:{number}: {line}"
        for folder in folders
        for path in sorted(Path(folder).rglob("*.py"))
        if path.name not in ("nosleep.py", "test_repository_commands.py")  # these two must spell it
        for number, line in offences(path)
    ]
    for line in found:
        print(line)
    if found:
        print(f"{len(found)} unexplained: wait on an event, a descriptor or a notification, or add `# sleep: why`")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
