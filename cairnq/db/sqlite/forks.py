"""Around a fork: every connection of this process is closed before it, so that no child ever inherits one.

SQLite's locks belong to a process, and its library remembers which ones it holds: a child that inherits an open
connection believes it holds locks that only its parent has, and both may then write at once.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from typing import Protocol

from cairnq.pure.errors import InheritedDatabase

PATIENCE_S = 5.0
"""How long a fork waits for a statement in hand. What is still in use then is not usable in the child."""


class Suspendable(Protocol):
    """What owns connections."""

    def suspend(self, timeout_s: float) -> bool:
        """Close the connection and open none until `resume()`; False if that could not be done in time."""
        ...

    def resume(self) -> None: ...
    def begin_anew(self) -> None:
        """In the child: forget the parent's threads, and a connection that could not be closed."""
        ...


_carried: list[sqlite3.Connection] = []
"""Never used and never closed: closing them here would end locks of the parent, and remove its log."""

_unusable: set[str] = set()

_owners: weakref.WeakSet[Suspendable] = weakref.WeakSet()
_suspended: list[Suspendable] = []
_lock = threading.Lock()


def register(owner: Suspendable) -> None:
    with _lock:
        _owners.add(owner)


def carry(connection: sqlite3.Connection, path: str) -> None:
    """In the child: this one could not be closed before the fork, so the file is lost to this process."""
    _carried.append(connection)
    _unusable.add(path)


def check_usable(path: str) -> None:
    if path in _unusable:
        raise InheritedDatabase(
            f"this process was forked while its parent was in a transaction on {path}, and SQLite's locks do not "
            "survive that: fork outside of transactions, or start this process anew (exec)"
        )


def _before() -> None:
    _lock.acquire()
    _suspended.extend(owner for owner in list(_owners) if owner.suspend(PATIENCE_S))


def _after_in_parent() -> None:
    for owner in _suspended:
        owner.resume()
    _suspended.clear()
    _lock.release()


def _after_in_child() -> None:
    _suspended.clear()
    for owner in list(_owners):
        owner.begin_anew()
    _lock.release()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
