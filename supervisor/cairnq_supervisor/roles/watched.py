"""A worker's own view of its lease table: it says when it begins to hold something, and when its hands are full."""

from __future__ import annotations

from collections.abc import Callable

from cairnq.pure.clock import Clock
from cairnq.run.leases import LeaseTable
from cairnq_supervisor.pure.messages import Exhausting, Holding, Message

_SELDOM = 1 / 6
"""Part of a lease within which "I hold something" is said once. The supervisor goes on beating for twice that."""


class WatchedTable(LeaseTable):
    """`say` takes messages for the supervisor; `lease` is seconds."""

    def __init__(
        self,
        buffer: memoryview,
        capacity: int,
        *,
        lease: float,
        concurrency: int,
        say: Callable[[Message], None],
        clock: Clock,
    ) -> None:
        super().__init__(buffer, capacity)
        self._lease = lease
        self._full_at = concurrency
        self._say = say
        self._clock = clock
        self._said_at = float("-inf")
        self._woken = False

    def woken(self) -> None:
        """A wake came: should this worker have its hands full afterwards, another one is to have a look."""
        self._woken = True

    def hold(self, task_id: str, attempt: int, *, lease_s: float, sent: float) -> int:
        slot = super().hold(task_id, attempt, lease_s=lease_s, sent=sent)
        held = self.capacity - len(self._free_list())
        if held == 1:
            self._begin()
        if self._woken and held >= self._full_at:
            self._woken = False
            self._say(Exhausting())
        return slot

    def run_out(self, now: float) -> None:
        """It claims nothing before somebody has beaten, though by now nobody may hold anything."""
        super().run_out(now)
        self._say(Holding())

    def _begin(self) -> None:
        now = self._clock()
        if now - self._said_at >= self._lease * _SELDOM:
            self._said_at = now
            self._say(Holding())
