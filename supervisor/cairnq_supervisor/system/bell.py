"""A bell: one descriptor by which any process that has it wakes one that waits. Ringing never blocks."""

from __future__ import annotations

import contextlib
import os


class Bell:
    """Rung many times before it is heard, it rings once. Made before the fork, and lent over a channel."""

    def __init__(self, fd: int | None = None) -> None:
        """`fd`: of one that was lent to this process. Raises `OSError` when there is no descriptor left."""
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK) if fd is None else fd

    def fileno(self) -> int:
        return self.fd

    def ring(self) -> None:
        """Also for one that does not listen yet."""
        with contextlib.suppress(BlockingIOError):  # rung 2 ** 64 times: it rings
            os.eventfd_write(self.fd, 1)

    def hear(self) -> int:
        """How often it was rung since it was last heard."""
        try:
            return os.eventfd_read(self.fd)
        except BlockingIOError:
            return 0

    def close(self) -> None:
        os.close(self.fd)
