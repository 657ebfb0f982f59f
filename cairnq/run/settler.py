"""Writes outcomes: those that wait while one statement is in flight go together in the next, without delay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cairnq.db.replies import within
from cairnq.pure.clock import Clock
from cairnq.pure.models import Outcome, Settlement, Standing, TaskStatus
from cairnq.run.attempt import Attempt
from cairnq.run.evidence import status_written
from cairnq.run.outage import Outage, retry_delay_s
from cairnq.store.base import TaskStore

MAX_ROWS = 1_000
MAX_BYTES = 16 * 2**20
"""Of one statement. PostgreSQL takes a message of up to 1 GiB; this much fills the pipe."""
LOCK_S = 0.02
"""Pause before a row is settled again that was locked: a few times what a commit takes."""
_RELEASES = frozenset({Outcome.RELEASE, Outcome.INTERRUPT})


@dataclass(slots=True, eq=False)
class Item:
    """One settlement on its way."""

    attempt: Attempt
    settlement: Settlement
    may_be_written: bool = False
    """An earlier statement had no reply: the row may be settled already."""
    passed_by: int = 0
    """How often its row was locked by another, and is held still."""


class Settler:
    """One statement in flight at a time. What it could not write it keeps, for as long as the lease is trusted."""

    def __init__(
        self,
        store: TaskStore,
        worker_id: str,
        *,
        lease_s: float,
        clock: Clock,
        outage: Outage,
        lose: Callable[[Attempt, str], None],
        on_written: Callable[[], None],
        hold_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`lose(attempt, why)` is called for each that was lost, `on_written()` after each answered statement.

        `hold_s()`: seconds for which the oldest may wait, as things are now, for a claim that takes it along.
        """
        self._store = store
        self._worker_id = worker_id
        self._lease_s = lease_s
        self._clock = clock
        self._outage = outage
        self._lose = lose
        self._on_written = on_written
        self._hold_s = hold_s
        self._waiting: list[Item] = []
        self._open: set[Item] = set()
        self._releases = 0
        self._event = asyncio.Event()
        self._goes_alone = False
        self._waits_since = 0.0
        self._is_urgent = False
        self._pause_ends = asyncio.Event()

    @property
    def is_idle(self) -> bool:
        return not self._open

    @property
    def is_releasing(self) -> bool:
        """The outcome of some release is not known yet, so the worker must not claim."""
        return self._releases > 0

    def put(self, attempt: Attempt, settlement: Settlement) -> None:
        """Choose the outcome of an attempt. The first choice stands; a later one has no effect."""
        if attempt.settlement is not None or attempt.slot is None:
            return
        attempt.choose(settlement, attempt.ended_at or self._clock())
        item = Item(attempt, settlement)
        self._open.add(item)
        self._releases += settlement.outcome in _RELEASES
        self._enqueue(item)

    async def run(self) -> None:
        """Until cancelled. Raises only what is a bug of ours."""
        failures = 0
        while True:
            await self._event.wait()
            self._event.clear()
            while batch := await self._next():
                if await self._write(batch):
                    failures = 0
                    continue
                failures += 1
                self._waiting[:0] = batch
                await asyncio.sleep(retry_delay_s(failures))

    def take_along(self) -> list[Item]:
        """What waits, for a claim to take with it that goes out now. It is given back by one of the next three."""
        return [] if self._goes_alone else self._take()

    def answered(self, batch: Sequence[Item], statuses: Sequence[TaskStatus | None]) -> None:
        """It was written with the claim. What matched no row goes once more, alone, and is then asked about."""
        for item, status in zip(batch, statuses, strict=True):
            if not self._close(item, status):
                self._goes_alone = True
                self._enqueue(item)

    def unanswered(self, batch: Sequence[Item]) -> None:
        """Nobody knows whether it was written."""
        for item in batch:
            item.may_be_written = True
        self.refused(batch)

    def refused(self, batch: Sequence[Item]) -> None:
        """It was not written. Now it goes by itself."""
        self._waiting[:0] = batch
        self._goes_alone = bool(self._waiting)
        self._event.set()

    def hurry(self) -> None:
        """No claim comes that could take along what waits, or somebody waits for it."""
        self._is_urgent = True
        self._pause_ends.set()

    async def _next(self) -> list[Item]:
        """What no claim took along: one that goes out in this turn of the loop, or soon while calls are short."""
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        while self._waiting and not self._is_urgent and not self._goes_alone:
            left = self._waits_since + self._hold_s() - loop.time()
            if left <= 0:
                break
            self._pause_ends.clear()
            timer = loop.call_later(left, self._pause_ends.set)
            try:
                await self._pause_ends.wait()
            finally:
                timer.cancel()
        return self._take()

    def _enqueue(self, item: Item) -> None:
        if not self._waiting:
            self._waits_since = asyncio.get_running_loop().time()
            self._is_urgent = False
        self._waiting.append(item)
        if item.attempt.is_awaited or item.settlement.outcome in _RELEASES or len(self._waiting) == MAX_ROWS:
            self.hurry()
        self._event.set()

    def _take(self) -> list[Item]:
        """The next statement's rows, oldest first. What is no longer trusted is not written any more."""
        now = self._clock()
        batch: list[Item] = []
        size = 0
        for position, item in enumerate(self._waiting):
            size += len(item.settlement.body or "")
            if batch and (len(batch) == MAX_ROWS or size > MAX_BYTES):
                self._waiting = self._waiting[position:]
                return batch
            if item.attempt.is_trusted(now):
                batch.append(item)
            else:
                self._give_up(item, "its trust window ended before its outcome could be written")
        self._waiting = []
        return batch

    async def _write(self, batch: Sequence[Item]) -> bool:
        """False when the database gave no answer."""
        settlements = [item.settlement for item in batch]
        asked_at = self._clock()
        try:
            work = self._store.settle_many(self._worker_id, settlements)
            statuses = await within(work, self._patience(), "a settlement")
        except Exception as error:
            if not self._outage.is_of_database(error):
                raise
            for item in batch:
                item.may_be_written = True
            self._outage.failed(error, "settle", asked_at=asked_at)
            return False
        self._outage.worked("settle")
        self._goes_alone = False
        absent = [item for item, status in zip(batch, statuses, strict=True) if not self._close(item, status)]
        if absent:
            await self._read_back(absent)
        self._on_written()
        return True

    def _close(self, item: Item, status: TaskStatus | None) -> bool:
        if status is None:
            return False
        self._forget(item)
        item.attempt.close(status)
        return True

    async def _read_back(self, absent: Sequence[Item]) -> None:
        """A row that did not match is lost only when the database says so."""
        asked_at = self._clock()
        try:
            work = self._store.standing_many(self._worker_id, [item.attempt.held for item in absent])
            standings = await within(work, self._patience(), "a settlement's read-back")
        except Exception as error:
            if not self._outage.is_of_database(error):
                raise
            self._outage.failed(error, "settle", asked_at=asked_at)
            standings = [Standing.HELD] * len(absent)
        for item, standing in zip(absent, standings, strict=True):
            match standing:
                case Standing.HELD:
                    asyncio.get_running_loop().call_later(self._pause_s(item), self._enqueue, item)
                case _ if not self._close(item, self._written_after_all(item, standing)):
                    self._give_up(item, "its settlement matched no row")

    def _pause_s(self, item: Item) -> float:
        """Another claim may hold the row's lock for the time of a commit; a transaction of others for longer."""
        item.passed_by += 1
        return min(LOCK_S * (1 << min(item.passed_by - 1, 10)), self._lease_s / 20)

    def _written_after_all(self, item: Item, standing: Standing) -> TaskStatus | None:
        may_be_own = item.may_be_written and item.attempt.is_trusted(self._clock())
        return status_written(item.settlement, standing, may_be_own=may_be_own)

    def _give_up(self, item: Item, why: str) -> None:
        self._forget(item)
        self._lose(item.attempt, why)

    def _forget(self, item: Item) -> None:
        self._open.discard(item)
        self._releases -= item.settlement.outcome in _RELEASES

    def _patience(self) -> float:
        """Seconds for one statement: what is left of the lease must allow for another try."""
        return self._lease_s / 3
