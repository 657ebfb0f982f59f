"""A descriptor that takes lines and never blocks the writer: what a slow reader leaves is kept, up to a limit."""

from __future__ import annotations

import errno
import os
import select
from collections import deque

_CHUNK = 4096
"""Bytes. A pipe that polls as writable takes this much (PIPE_BUF) without blocking, whatever its flags."""

_MAX_WAITING = 1 << 20
"""Bytes kept for a reader that does not read."""


_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""What a file answers that may take lines again: its disk is full now."""


class LineSink:
    """Writes lines to `fd` without touching its flags, which the shell's other programs share."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.dropped = 0
        self.gone = False
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)
        self._waiting: deque[bytes] = deque()
        self._size = 0

    @property
    def congested(self) -> bool:
        return bool(self._waiting)

    def write(self, line: str) -> None:
        """Write the line and a newline, or keep it, or drop it and count."""
        data = line.encode(errors="replace") + b"\n"
        if self.gone or self._size + len(data) > _MAX_WAITING:
            self.dropped += 1
            return
        self._waiting.append(data)
        self._size += len(data)
        self.flush()

    def flush(self) -> None:
        """Write as much as the reader takes now."""
        while self._waiting and not self.gone:
            data = self._waiting[0]
            try:
                if not self._writable():
                    return
                written = os.write(self.fd, data[:_CHUNK])
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _NO_ROOM:
                    self.dropped += len(self._waiting)
                else:  # the reader has gone: there is nobody to tell
                    self.gone = True
                self._waiting.clear()
                self._size = 0
                return
            self._size -= written
            if written == len(data):
                self._waiting.popleft()
            else:
                self._waiting[0] = data[written:]

    def _writable(self) -> bool:
        return any(mask & select.POLLOUT or mask & (select.POLLERR | select.POLLHUP) for _, mask in self._poll.poll(0))
