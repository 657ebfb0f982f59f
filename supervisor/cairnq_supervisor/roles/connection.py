"""The keeper's one connection for statements: bounded, replaced when it does not answer, and quiet about an outage."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from cairnq.db.replies import within
from cairnq.pure.clock import Clock, boottime
from cairnq.pure.errors import DatabaseUnavailable, StoreClosed
from cairnq.run.outage import Outage
from cairnq.store.base import TaskStore

T = TypeVar("T")

MakeStore = Callable[[], TaskStore]


class Connection:
    """`make` gives a store of one connection, opened at its first use. One that does not answer is replaced."""

    def __init__(self, make: MakeStore, outage: Outage, clock: Clock = boottime) -> None:
        self._make = make
        self._outage = outage
        self._clock = clock
        self._store = make()
        self._closing: set[asyncio.Task[None]] = set()

    async def ask(self, operation: str, work: Callable[[TaskStore], Awaitable[T]], *, patience: float) -> T | None:
        """What `work(store)` returns. None when the database gave no answer within `patience` seconds, or refused.

        Raises only what is a bug of ours.
        """
        asked_at, store = self._clock(), self._store
        try:
            answer = await within(work(store), patience, operation)
        except StoreClosed:
            if store is self._store:
                raise
            return None  # somebody else who asked had no answer, and had it replaced under us
        except Exception as error:
            if not self._outage.is_of_database(error):
                raise
            self._outage.failed(error, operation, asked_at=asked_at)
            if isinstance(error, DatabaseUnavailable):
                self._replace()
            return None
        self._outage.worked(operation)
        return answer

    async def close(self, *, patience: float) -> None:
        """What does not close within `patience` seconds ends with the process."""
        self._replace()
        if self._closing:
            await asyncio.wait(self._closing, timeout=patience)

    def _replace(self) -> None:
        """Closing one that does not answer may take seconds, for which nobody waits."""
        old, self._store = self._store, self._make()
        closing = asyncio.ensure_future(old.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
