"""Retention and vacuum: the one keeper of all hosts that has the duty deletes what is old and removes dead rows.

It works over a connection of its own, opened for each round, so that no beat ever waits for it.
"""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Callable, Mapping
from typing import cast

from cairnq.pure.errors import CairnQError, DatabaseUnavailable, PermissionDenied
from cairnq.pure.models import TaskStatus
from cairnq.store.base import TaskStore
from cairnq_supervisor.pure.keys import FINISHED
from cairnq_supervisor.roles.link import Link

DUTY = "upkeep"
FIRST_ROUND = 2.0
"""Seconds after the keeper's start, at most."""

INTERVAL = 60.0
"""Seconds between two rounds, with jitter."""

_DUTY_LEASE_MS = round(3 * INTERVAL * 1000)
"""A host that dies leaves the duty to another after this."""

BATCH = 1000
_PAUSE = 0.05
"""Seconds between two batches: a sweep of millions is nobody's rush."""


class Caretaker:
    """`retention`: seconds since their end after which finished tasks go, by status; others stay. It may change."""

    def __init__(self, make_store: Callable[[], TaskStore], link: Link, retention: Mapping[str, float]) -> None:
        self._make_store = make_store
        self._link = link
        self._retention = retention
        self._holder = secrets.token_hex(8)
        self._failing = False
        self._missed = 0

    async def run(self) -> None:
        """Until cancelled."""
        pause = FIRST_ROUND * random.random()  # noqa: S311 - jitter, not a secret
        while True:
            await asyncio.sleep(pause)
            await self.round()
            pause = INTERVAL * random.uniform(0.8, 1.2)  # noqa: S311 - jitter, not a secret

    async def round(self) -> None:
        """One look. What fails is said once, and tried again in the next round."""
        store = self._make_store()
        try:
            await self._care(store)
        except DatabaseUnavailable as error:
            # Those that beat and listen tell of an outage. That it is this connection alone shows by the next round.
            self._missed += 1
            if self._missed > 1:
                self._failed(error)
        except PermissionDenied as error:
            # A role that may not keep the duty's row may not vacuum either; without retention nothing is missing.
            if self._retention:
                self._failed(error)
        except CairnQError as error:
            self._failed(error)
        else:
            self._failing, self._missed = False, 0
        finally:
            await store.close()

    async def _care(self, store: TaskStore) -> None:
        if not await self._has_duty(store):
            return
        deleted: dict[str, int] = dict.fromkeys(FINISHED, 0)
        for status, age in list(self._retention.items()):
            deleted[status] = await self._sweep(store, cast("TaskStatus", status), age)
        if any(deleted.values()):
            self._link.emit("retention.swept", **deleted)
        if await store.vacuum_if_due():
            self._link.emit("database.vacuumed")

    async def _sweep(self, store: TaskStore, status: TaskStatus, age: float) -> int:
        """Batch by batch; the duty is kept meanwhile, and left at once where it was lost."""
        deleted = 0
        while await self._has_duty(store):
            gone = await store.purge(older_than_ms=round(age * 1000), status=status, limit=BATCH)
            deleted += len(gone)
            if len(gone) < BATCH:
                break
            await asyncio.sleep(_PAUSE)
        return deleted

    async def _has_duty(self, store: TaskStore) -> bool:
        return await store.take_duty(DUTY, self._holder, _DUTY_LEASE_MS)

    def _failed(self, error: CairnQError) -> None:
        if not self._failing:
            self._link.emit("upkeep.failed", error=error)
        self._failing = True
