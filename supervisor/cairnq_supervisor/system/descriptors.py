"""The descriptors that belong to the supervisor alone: a child closes them before anything else runs in it."""

from __future__ import annotations

import contextlib
import os


class Descriptors:
    """A register of open descriptors. What the application opened while it was imported is not in it and stays open."""

    def __init__(self) -> None:
        self._open: set[int] = set()

    def __len__(self) -> int:
        return len(self._open)

    def add(self, *fds: int) -> None:
        self._open.update(fds)

    def discard(self, *fds: int) -> None:
        """They were closed, or are about to be."""
        self._open.difference_update(fds)

    def close_in_child(self) -> None:
        """The parent's register is a copy elsewhere and does not change."""
        for fd in self._open:
            with contextlib.suppress(OSError):  # closed between the entry and the fork: nothing is left to close
                os.close(fd)
        self._open.clear()
