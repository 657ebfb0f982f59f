"""A worker's units of host-wide resources: used from when their lock is held, given back when no call needs them."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from cairnq_supervisor.pure.messages import Message, Returned

_LOOK_AGAIN = 0.1
"""Seconds between two looks at a lock that an orphan still holds, or at a call that has not ended yet."""


def unit_file(folder: Path, stem: str, resource: str, unit: int) -> Path:
    """The file whose lock goes with the unit. `stem` names the supervisor's configuration."""
    return folder / f"{stem}.{quote(resource, safe='')}.{unit}.unit"


class Units:
    """`set_ceiling(resource, n)` and `in_use(resource)` are the engine's; `say` takes messages for the supervisor.

    `show(n)` is told how many of all resources may be used.

    `locks`: folder and stem of the units' files; None: there is no folder for them, and the supervisor's word is all.
    """

    def __init__(
        self,
        locks: tuple[Path, str] | None,
        *,
        say: Callable[[Message], None],
        set_ceiling: Callable[[str, int], None],
        in_use: Callable[[str], int],
        show: Callable[[int], None],
    ) -> None:
        self._locks = locks
        self._say = say
        self._set_ceiling = set_ceiling
        self._in_use = in_use
        self._show_sum = show
        self._loop = asyncio.get_running_loop()
        self._held: dict[str, dict[int, int | None]] = defaultdict(dict)
        self._asked: dict[str, set[int]] = defaultdict(set)

    def granted(self, resource: str, unit: int) -> None:
        """Ours as soon as the lock is: an orphan of an earlier supervisor may still work with it."""
        if unit in self._asked[resource]:
            self._give_back(resource, unit)
            return
        try:
            self._held[resource][unit] = self._lock(resource, unit)
        except BlockingIOError:
            self._loop.call_later(_LOOK_AGAIN, self.granted, resource, unit)
        else:
            self._show(resource)

    def asked_back(self, resource: str, unit: int) -> None:
        """No call begins with it any more; it goes back when the calls under way need no more than is left."""
        self._asked[resource].add(unit)
        self._show(resource)
        if unit in self._held[resource]:
            self._release(resource, unit)

    def _release(self, resource: str, unit: int) -> None:
        if self._in_use(resource) > self._usable(resource):
            self._loop.call_later(_LOOK_AGAIN, self._release, resource, unit)
            return
        lock = self._held[resource].pop(unit)
        if lock is not None:
            os.close(lock)
        self._give_back(resource, unit)

    def _give_back(self, resource: str, unit: int) -> None:
        self._asked[resource].discard(unit)
        self._say(Returned(resource, unit))

    def _usable(self, resource: str) -> int:
        return len(self._held[resource].keys() - self._asked[resource])

    def _show(self, resource: str) -> None:
        self._set_ceiling(resource, self._usable(resource))
        self._show_sum(sum(self._usable(one) for one in self._held))

    def _lock(self, resource: str, unit: int) -> int | None:
        """The descriptor that holds it. Raises `BlockingIOError` while another process does."""
        if self._locks is None:
            return None
        fd = os.open(unit_file(*self._locks, resource, unit), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise
        return fd
