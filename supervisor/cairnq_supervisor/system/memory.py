"""Shared memory without a name: a memfd that a child inherits and that can be lent to another over a channel."""

from __future__ import annotations

import mmap
import os


def create(label: str, size: int) -> int:
    """A descriptor of `size` zeroed bytes, gone when the last holder is. `label` shows in /proc."""
    fd = os.memfd_create(label, os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, size)
    except OSError:
        os.close(fd)
        raise
    return fd


def attach(fd: int) -> mmap.mmap:
    """The memory behind `fd`, shared and writable. The descriptor may be closed afterwards."""
    return mmap.mmap(fd, os.fstat(fd).st_size)
