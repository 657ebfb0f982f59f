"""Taking queued tasks, and taking back those whose lease ran out."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from cairnq.db.session import Executor
from cairnq.pure import arguments, envelope, jsonio
from cairnq.pure.models import ClaimedTask, Held, Task
from cairnq.pure.onward import Onward, Place
from cairnq.store import rows
from cairnq.store.base import Draw, DrawClaimed, Installation
from cairnq.store.rows import in_claim_order
from cairnq.store.runner import BoundSession, StatementRunner, callers

T = TypeVar("T")

RECOVERY_INTERVAL_S = 5.0
"""The public `claim` recovers first when this process has not done so for min(lease/3, this)."""


class Claiming(StatementRunner):
    _recovered_at = float("-inf")

    def __init__(self, executor: Executor, installation: Installation | None) -> None:
        super().__init__(executor, installation)
        self._onward = Onward()

    async def claim(
        self,
        queues: Sequence[str],
        worker_id: str,
        lease_ms: int = 30_000,
        limit: int = 1,
        names: Sequence[str] | None = None,
    ) -> list[Task]:
        """Up to `limit` tasks, highest priority first, leased to `worker_id` for `lease_ms`."""
        request = ClaimRequest(queues, worker_id, lease_ms, names)
        limit = checked_limit(limit)
        await self._recover_if_due(lease_ms)
        return [item.task for item in await self._claim(request, limit)]

    async def claim_session(
        self,
        queues: Sequence[str],
        worker_id: str,
        lease_ms: int,
        names: Sequence[str] | None,
        plan: Callable[[Draw], Awaitable[T]],
    ) -> T | None:
        """`plan(draw)` inside one claiming transaction; None, and no transaction, where nothing is due."""
        request = ClaimRequest(queues, worker_id, lease_ms, names)
        await self._recover_if_due(lease_ms)

        async def plan_tasks(draw_claimed: DrawClaimed) -> T:
            async def draw(names: Sequence[str] | None, limit: int) -> list[Task]:
                return [item.task for item in await draw_claimed(names, limit)]

            return await plan(draw)

        return await self._claim_drawn(request, plan_tasks)

    async def claim_many(
        self,
        queues: Sequence[str],
        worker_id: str,
        lease_ms: int,
        limit: int,
        names: Sequence[str] | None,
    ) -> list[ClaimedTask]:
        """One statement; no recovery first; payload sizes as the wire told them. For one claimer: see `Onward`."""
        request, limit = ClaimRequest(queues, worker_id, lease_ms, names), checked_limit(limit)
        place = self._place_for(request)
        return await self._rest(request, limit, await self._claim(request, limit, place), place)

    async def claim_drawn(
        self,
        queues: Sequence[str],
        worker_id: str,
        lease_ms: int,
        names: Sequence[str] | None,
        plan: Callable[[DrawClaimed], Awaitable[T]],
    ) -> T | None:
        """`claim_session` with payload sizes, and without recovery."""
        return await self._claim_drawn(ClaimRequest(queues, worker_id, lease_ms, names), plan)

    async def claim_suspect(
        self, queues: Sequence[str], worker_id: str, lease_ms: int, names: Sequence[str]
    ) -> list[ClaimedTask]:
        """At most one, for a process that runs nothing beside it."""
        request = ClaimRequest(queues, worker_id, lease_ms, names)
        if request.asks_for_nothing:
            return []
        if self._executor.has_one_writer and not await self.suspect_waits(queues, names):
            return []
        _, _, values = request.statement(request.names, 1)
        return rows.claimed(await self._rows("claim_suspect", **values))

    async def suspect_waits(self, queues: Sequence[str], names: Sequence[str]) -> bool:
        """Read-only: one look at an index that is empty but for suspects."""
        wanted = {"queues": arguments.names(queues, "queues"), "names": arguments.names(names, "names")}
        return bool((await self._rows("suspect_waits", **wanted))[0][0])

    async def held_by(self, worker_id: str) -> list[Held]:
        return [Held(*row) for row in await self._rows("held_by", worker_id=worker_id)]

    async def recover(self, limit: int = 1000) -> int:
        """Re-queue (or fail, or cancel) up to `limit` tasks with a lapsed lease; returns how many."""
        limit = checked_limit(limit)
        if self._executor.has_one_writer and not (await self._rows("lapsed"))[0][0]:
            self._recovered_at = time.monotonic()
            return 0
        error = jsonio.encode(envelope.lease_expired())
        found = await self._rows("recover", error=error, limit=limit)
        self._recovered_at = time.monotonic()
        return len(found)

    async def _recover_if_due(self, lease_ms: int) -> None:
        interval = min(lease_ms / 3000, RECOVERY_INTERVAL_S)
        if time.monotonic() - self._recovered_at >= interval:
            await self.recover()

    def _place_for(self, request: ClaimRequest) -> Place | None:
        """Not on SQLite, whose index has no entry of a row that is not there."""
        if self._executor.has_one_writer or len(request.queues) != 1:
            return None
        return self._onward.begin(request.asked, time.monotonic())

    async def _rest(
        self, request: ClaimRequest, limit: int, found: list[ClaimedTask], place: Place | None
    ) -> list[ClaimedTask]:
        """What was found from `place` on, and where that is too little, what is before it."""
        if place is not None and len(found) < limit:
            found = in_claim_order([*found, *await self._claim(request, limit - len(found))])
        self._onward.claimed(request.asked, found, limit)
        return found

    async def _claim(self, request: ClaimRequest, limit: int, place: Place | None = None) -> list[ClaimedTask]:
        if request.asks_for_nothing or limit == 0:
            return []
        if self._executor.has_one_writer and not await self._anything_due(request):
            return []
        name, variant, values = request.statement(request.names, limit, place)
        return rows.claimed(await self._once(name, variant, **values))

    async def _claim_drawn(self, request: ClaimRequest, plan: Callable[[DrawClaimed], Awaitable[T]]) -> T | None:
        if request.asks_for_nothing or not await self._anything_due(request):
            return None
        async with self._transaction() as bound:

            async def draw(names: Sequence[str] | None, limit: int) -> list[ClaimedTask]:
                return await request.draw(bound, names, limit)

            return await callers(plan(draw))

    async def _anything_due(self, request: ClaimRequest) -> bool:
        conditions = [] if request.names is None else ["names"]
        return bool((await self._rows("due", conditions, queues=request.queues, names=request.names))[0][0])


class ClaimRequest:
    """What a claim asks for, checked once. `names`: None for any."""

    def __init__(self, queues: Sequence[str], worker_id: str, lease_ms: int, names: Sequence[str] | None) -> None:
        self.queues = arguments.names(queues, "queues")
        self.names = None if names is None else arguments.names(names, "names")
        self._worker_id = arguments.text(worker_id, "worker_id")
        self._lease_ms = arguments.lease(lease_ms)

    @property
    def asked(self) -> object:
        return self.queues, self.names

    @property
    def asks_for_nothing(self) -> bool:
        return not self.queues or self.names == []

    async def draw(self, bound: BoundSession, names: Sequence[str] | None, limit: int) -> list[ClaimedTask]:
        """`names`: None for those of the request."""
        wanted = self.names if names is None else arguments.names(names, "names")
        limit = checked_limit(limit)
        if limit == 0 or wanted == []:
            return []
        name, variant, values = self.statement(wanted, limit)
        return rows.claimed(await bound.rows(name, variant, **values))

    def statement(
        self, names: list[str] | None, limit: int, place: Place | None = None
    ) -> tuple[str, Sequence[str], dict[str, Any]]:
        """The name, the variant and the values of the statement that claims, from `place` on."""
        values = {"queues": self.queues, "worker_id": self._worker_id, "lease_ms": self._lease_ms, "limit": limit}
        variant = []
        if place is not None:
            variant = ["onward"]
            values |= {"from_priority": place.priority, "from_run_at_ms": place.run_at_ms, "from_id": place.id}
        return ("claim", variant, values) if names is None else ("claim_named", variant, {"names": names, **values})


def checked_limit(limit: int) -> int:
    return arguments.integer(limit, "limit", least=0, most=arguments.MAX_INT4)
