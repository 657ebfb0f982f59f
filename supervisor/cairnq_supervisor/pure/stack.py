"""A dump of a worker's stacks, reduced to what its reader can do something about."""

from __future__ import annotations

import re

_FRAME = re.compile(r'  File "(?P<file>[^"]+)", line \d+ in (?P<name>.+)')
_CALLERS = ("/cairnq/run/executor.py", "/cairnq/run/thread_calls.py")
_CALLS = "_perform"
"""Where the engine calls handlers: what is more recent is the handler's own."""


def shortened(dump: str) -> str:
    """Each thread's frames down to the engine's call; all of them where the engine did not call."""
    kept: list[str] = []
    below = False
    for line in dump.splitlines():
        frame = _FRAME.fullmatch(line)
        if frame is None:
            below = False
        if not below:
            kept.append(line)
        below = below or (frame is not None and _is_caller(frame))
    return "\n".join(kept)


def guilty(dump: str) -> str | None:
    """The function that the engine called in the thread of the loop, the first of the dump's that it called at all."""
    before: str | None = None
    for line in dump.splitlines():
        frame = _FRAME.fullmatch(line)
        if frame is not None and _is_caller(frame):
            return before
        before = frame["name"] if frame is not None else None
    return None


def _is_caller(frame: re.Match[str]) -> bool:
    return frame["file"].endswith(_CALLERS) and frame["name"] == _CALLS
