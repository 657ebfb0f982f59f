"""The control socket: a Unix socket of mode 0600 that one supervisor holds by a lock, and its clients' connections."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
import struct
from pathlib import Path

_BACKLOG = 128
_MODE = 0o600
_ROOT = 0
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


class Occupied(Exception):
    """Another supervisor holds this socket."""


class ControlSocket:
    """Listens at `path`. What a dead supervisor left there is known by its lock being free, and replaced.

    `alias`: another name for it in the same folder, which belongs to whoever took it last, unless it is the own name of
    another that lives.
    """

    def __init__(self, path: Path, alias: Path | None = None) -> None:
        """Raises `Occupied`, or `OSError` where the folder does not allow it."""
        self.path = path
        self._alias = alias
        self._lock_path = Path(f"{path}.lock")
        self._lock = self._hold()
        try:
            self._socket = self._bind()
        except OSError:
            os.close(self._lock)
            raise
        self._bound = self.path.lstat()
        with contextlib.suppress(OSError):  # it can be called by its own name
            self._take_alias()

    @property
    def descriptors(self) -> tuple[int, int]:
        return self._lock, self._socket.fileno()

    def fileno(self) -> int:
        return self._socket.fileno()

    def accept(self) -> socket.socket | None:
        """The next client, non-blocking; None when there is none, no descriptor for it, or it is another user's."""
        try:
            client, _ = self._socket.accept()
        except OSError:
            return None
        if _user_of(client) not in (os.geteuid(), _ROOT):
            client.close()
            return None
        client.setblocking(False)
        return client

    def close(self) -> None:
        if self._alias is not None:
            with contextlib.suppress(OSError):  # it has gone, or is a socket by now
                if self._alias.readlink() == Path(self.path.name):
                    self._alias.unlink()
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(self.path.lstat(), self._bound):
                self.path.unlink()
        with contextlib.suppress(FileNotFoundError):
            self._lock_path.unlink()
        self._socket.close()
        os.close(self._lock)

    def _hold(self) -> int:
        """The lock's descriptor. A file that its last holder removed meanwhile is no lock."""
        while True:
            lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(lock), self._lock_path.stat()):
                    return lock
            except BlockingIOError:
                os.close(lock)
                message = f"another supervisor of this configuration is running (it holds {self.path})"
                raise Occupied(message) from None
            except FileNotFoundError:
                pass
            os.close(lock)

    def _bind(self) -> socket.socket:
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o777 & ~_MODE)
        try:
            listener.bind(str(self.path))
        except OSError:
            listener.close()
            raise
        finally:
            os.umask(before)
        listener.setblocking(False)
        listener.listen(_BACKLOG)
        return listener

    def _take_alias(self) -> None:
        if self._alias is None or _lives(self._alias):
            return
        fresh = Path(f"{self._alias}.{os.getpid()}")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(self.path.name)
        fresh.replace(self._alias)


def _lives(path: Path) -> bool:
    """Whether it is the own socket of a supervisor, by the lock that this one holds."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            return False
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _user_of(client: socket.socket) -> int:
    """As the kernel saw it at its connect. The mode of the socket says the same, until somebody changes it."""
    if not hasattr(socket, "SO_PEERCRED"):  # only Linux has it; elsewhere the mode must do
        return os.geteuid()
    _, user, _ = _CREDENTIALS.unpack(client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return int(user)
