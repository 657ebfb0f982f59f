"""Shared memory without a name: a memfd, mapped before the fork, and lent to another process over a channel."""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any

_PROT_READ_WRITE = 0x1 | 0x2
_MAP_SHARED = 0x1
_MADV_DONTFORK = 10
_FAILED = ctypes.c_void_p(-1).value
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def create(label: str, size: int) -> int:
    """A descriptor of `size` zeroed bytes, gone when the last holder is. `label` shows in /proc."""
    fd = os.memfd_create(label, os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, size)
    except OSError:
        os.close(fd)
        raise
    return fd


class Mapping:
    """The memory behind a descriptor, shared and writable, for as long as anybody holds a view of it.

    Not the `mmap` module's: that keeps a duplicate of the descriptor, which every later child would inherit.
    """

    def __init__(self, fd: int) -> None:
        """The descriptor may be closed afterwards. Raises `OSError`."""
        self._size = os.fstat(fd).st_size
        self._address = _libc.mmap(None, self._size, _PROT_READ_WRITE, _MAP_SHARED, fd, 0)
        if self._address == _FAILED:
            raise _last_error("mmap")
        memory: Any = (ctypes.c_ubyte * self._size).from_address(self._address)
        weakref.finalize(memory, _unmap, self._address, self._size, os.getpid()).atexit = False
        self.view = memoryview(memory).cast("B")

    def hide_from_children(self) -> None:
        """Processes that are forked from now on do not have this memory."""
        if _libc.madvise(self._address, self._size, _MADV_DONTFORK) != 0:
            raise _last_error("madvise")


def _unmap(address: int, size: int, owner: int) -> None:
    """In a child something else may stand at an address that was hidden from it."""
    if os.getpid() == owner:
        _libc.munmap(address, size)


def _last_error(call: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{call}: {os.strerror(number)}")
