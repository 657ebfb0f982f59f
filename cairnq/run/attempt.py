"""One held attempt: the task, its lease's slot, and how far it has come. The worker's only mutable record of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from cairnq.pure.models import ClaimedTask, Held, Settlement, Task, TaskStatus
from cairnq.run.leases import LeaseTable

if TYPE_CHECKING:
    from cairnq.run.calls import Call


class Attempt:
    """Named by (task id, attempt) within one worker; while it is held, its lease stands in `slot` of the table.

    It goes one way: held; then, once, an outcome is chosen (`settlement`); then it is closed, either settled with
    the status the task has now, or lost. Every later wish to write is refused by what is written here.
    """

    __slots__ = (
        *("task", "payload_bytes", "table", "slot", "call", "settlement", "otherwise", "status", "lost"),
        *("started_at", "ended_at"),
        *("_on_closed", "_on_lost", "_event", "_waiter"),
    )

    def __init__(
        self, claimed: ClaimedTask, table: LeaseTable, slot: int, on_closed: Callable[[Attempt, int], None]
    ) -> None:
        self.task: Task = claimed.task
        self.payload_bytes = claimed.payload_bytes
        self.table = table
        self.slot: int | None = slot
        self.call: Call | None = None
        self.settlement: Settlement | None = None
        self.otherwise: Settlement | None = None
        """What its call's end says of it, which came after an outcome was chosen and before it was written."""
        self.status: TaskStatus | None = None
        self.lost = False
        self.started_at: float | None = None
        self.ended_at: float | None = None
        """When its outcome was chosen, or its call returned; it is written later."""
        self._on_closed = on_closed
        self._waiter: asyncio.Future[TaskStatus | None] | None = None
        self._event: asyncio.Event | None = None
        self._on_lost: list[Callable[[], None]] = []

    @property
    def held(self) -> Held:
        return Held(self.task.id, self.task.attempt)

    @property
    def is_open(self) -> bool:
        """No outcome was chosen yet, and the handler may still choose one."""
        return self.settlement is None and not self.lost

    @property
    def lease_lost(self) -> asyncio.Event:
        if self._event is None:
            self._event = asyncio.Event()
            if self.lost:
                self._event.set()
        return self._event

    def is_trusted(self, now: float) -> bool:
        """Judged anew at every use: a timer may be late, and nobody needs to have told us."""
        return self.slot is not None and self.table.trusted_until(self.slot) > now

    def start(self, now: float) -> None:
        """Its handler is about to run."""
        assert self.slot is not None
        self.started_at = now
        self.table.start(self.slot, now)

    def choose(self, settlement: Settlement, now: float) -> None:
        """This is its outcome, which is written next."""
        assert self.slot is not None
        self.settlement = settlement
        if self.ended_at is None:
            self.end(now)

    def end(self, now: float) -> None:
        """Its outcome is chosen, or its call has returned and it will be."""
        if self.slot is not None and self.ended_at is None:
            self.ended_at = now
            self.table.end(self.slot)

    def reopen(self) -> None:
        """Nothing that was chosen is written: its handler goes on, or its call's end decides. Closed stays closed."""
        if self.slot is None:
            return
        self.settlement = None
        if self.call is None or not self.call.has_returned:
            self.ended_at = None
            self.table.reopen(self.slot)

    def cancel_requested(self) -> bool:
        if self.slot is None:
            return self.status == "canceled" or self.task.cancel_requested
        return self.table.cancel_requested(self.slot) or self.task.cancel_requested

    def when_lost(self, callback: Callable[[], None]) -> None:
        """`callback` runs on the loop, at once if it is too late."""
        if self.lost:
            callback()
        else:
            self._on_lost.append(callback)

    def outcome_written(self) -> asyncio.Future[TaskStatus | None]:
        """Resolves to the status when the settlement is written, to None when it turned out to be lost."""
        if self._waiter is None:
            self._waiter = asyncio.get_running_loop().create_future()
            if self.slot is None:
                self._waiter.set_result(self.status)
        return self._waiter

    @property
    def is_awaited(self) -> bool:
        """Its handler waits for the settlement to be written."""
        return self._waiter is not None

    def flag_lost(self) -> None:
        """From here on the handler can write nothing for this attempt: the lease is gone, or its time is up."""
        if self.lost:
            return
        self.lost = True
        if self._event is not None:
            self._event.set()
        callbacks, self._on_lost = self._on_lost, []
        for callback in callbacks:
            callback()

    def close(self, status: TaskStatus | None) -> None:
        """Give up the slot: the attempt is settled with `status`, or (None) no longer this worker's."""
        if self.slot is None:
            return
        slot, self.slot, self.status = self.slot, None, status
        # Circles: all in them would wait for the garbage collector, and the payload with them.
        self.call, self._on_lost = None, []
        self.table.free(slot)
        self._on_closed(self, slot)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(status)
