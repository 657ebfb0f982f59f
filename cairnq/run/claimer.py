"""The claim loop: looks for work when there is room for it, enters what it got, and clears up after lost replies."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from cairnq.db.replies import wait_for_reply
from cairnq.pure.looks import Looks
from cairnq.pure.models import ClaimedTask
from cairnq.pure.pace import Pace
from cairnq.pure.quota import Share
from cairnq.run.apart import Apart
from cairnq.run.context import Desk
from cairnq.run.demand import Demand, Draws
from cairnq.run.doubt import Doubt
from cairnq.run.executor import Executor
from cairnq.run.holdings import Holdings
from cairnq.run.intake import Intake
from cairnq.run.kept import Kept
from cairnq.run.outage import retry_delay_s
from cairnq.run.settler import Item, Settler
from cairnq.run.trust import margin

T = TypeVar("T")

LEAST_PATIENCE_S = 5.0
"""A claim may be slow on a busy server; only a lease that is shorter makes waiting for it useless."""


class Claimer:
    """One claim at a time, and none while the outcome of a release or of an earlier claim is unknown."""

    def __init__(
        self,
        desk: Desk,
        queues: Sequence[str],
        *,
        demand: Demand,
        holdings: Holdings,
        executor: Executor,
        settler: Settler,
        pace: Pace,
        kept: Kept,
        on_idle: Callable[[], None],
    ) -> None:
        """`on_idle()` is called whenever a look ended."""
        self._store = desk.store
        self._queues = list(queues)
        self._options = desk.options
        self._worker_id = desk.worker_id
        self._clock = desk.clock
        self._outage = desk.outage
        self._demand = demand
        self._executor = executor
        self._settler = settler
        self._pace = pace
        self._kept = kept
        self._on_idle = on_idle
        self._looks = Looks(desk.options.poll_interval_s)
        self._apart = Apart(only=desk.options.suspects_only)
        self._event = asyncio.Event()
        self._failures = 0
        self.doubt = Doubt(desk, holdings)
        self._intake = Intake(desk, holdings, executor, settler, self.doubt)
        self._wants_room = False
        self.is_quiesced = False
        self._is_outdated = False
        """Claiming was to stop since the claim under way was sent: it may bring what was given back then."""
        self.is_busy = False

    def wake(self) -> None:
        self._looks.wake(self._clock())
        self._event.set()

    def suspect_waits(self) -> None:
        """Its turn comes when nothing runs here."""
        self._apart.heard()
        if self._executor.is_idle:
            self._looks.again()
            self._event.set()

    def set_polling(self, polling: bool) -> None:
        self._looks.polling = polling
        self._event.set()

    def quiesce(self) -> None:
        self.is_quiesced = True
        self._is_outdated = True

    def resume(self) -> None:
        self.is_quiesced = False
        self.look_again()

    def look_again(self) -> None:
        """What kept it from claiming is over."""
        self._looks.again()
        self._event.set()

    def room_changed(self) -> None:
        """A call returned, or a settlement was written: what was left behind for want of room may go now."""
        if self._wants_room:
            self._looks.again()
            self._event.set()

    async def run(self) -> None:
        """Until cancelled. Raises only what is a bug of ours."""
        while True:
            self._event.clear()
            delay = self._looks.next_look() - self._clock()
            if delay > 0:
                await self._wait(delay)
            elif self._gate_is_open():
                await self._look()
            else:
                self._wants_room = True
                await self._event.wait()

    async def _wait(self, delay: float) -> None:
        """For the next planned look, or for whatever changes the plan."""
        if delay == float("inf"):
            await self._event.wait()
            return
        timer = asyncio.get_running_loop().call_later(delay, self._event.set)
        try:
            await self._event.wait()
        finally:
            timer.cancel()

    @property
    def is_near(self) -> bool:
        """The next claim goes as soon as calls have returned, and takes along what has ended."""
        return (
            not self.is_quiesced
            and not self._settler.is_releasing
            and not self._executor.is_held_up
            and self._demand.waits_for_calls_alone
        )

    def _gate_is_open(self) -> bool:
        return (
            not self.is_quiesced
            and not self._settler.is_releasing
            and not self._executor.is_held_up
            and self._kept.is_kept
            and self._apart.allows(idle=self._executor.is_idle)
            and self._demand.limit() > 0
        )

    async def _look(self) -> None:
        self.is_busy, self._is_outdated = True, False
        asked_at = self._clock()
        self._looks.take(asked_at)
        try:
            await self._claim()
        except Exception as error:
            if not self._outage.is_of_database(error):
                raise
            self.doubt.is_on = True
            self._failures += 1
            self._outage.failed(error, "claim", asked_at=asked_at)
            self._looks.again()
            self._looks.hold_off(self._clock() + retry_delay_s(self._failures))
        finally:
            self.is_busy = False
            self._on_idle()

    async def _claim(self) -> None:
        if self.doubt.is_on and not await self._is_cleared_up():
            return
        draws = self._demand.next_draws()
        if not draws:
            return
        sent, apart = self._clock(), self._apart.is_next(idle=self._executor.is_idle)
        if not apart:
            self._wants_room = draws.left_some_behind  # before the reply: room may come while it is on its way
        claimed = await (self._suspect(draws) if apart else self._others(draws))
        self._failures = 0
        self._outage.worked("claim")
        if apart:
            is_others_turn = self._apart.claimed(found=bool(claimed))
        else:
            now = self._clock()
            self._pace.claimed(now, full=len(claimed) == draws.most, took_s=now - sent)
            is_others_turn = not claimed and self._apart.nothing_else()
            if is_others_turn and not self._executor.is_idle:  # not before what runs has returned
                is_others_turn, self._wants_room = False, True
        if claimed or is_others_turn:
            self._looks.again()
        if claimed:
            await self._intake.take(claimed, sent, is_outdated=lambda: self._is_outdated)
        if not self._pace.ahead() or not self.is_near:
            self._settler.hurry()
        if 0 < len(claimed) < draws.most:
            await asyncio.sleep(0)  # nothing hurries to look once more: the calls start first

    async def _is_cleared_up(self) -> bool:
        """Whether a claim may follow: nothing is in doubt any more, and no release has begun meanwhile."""
        is_known = await self.doubt.clear_up()
        if is_known and self._gate_is_open():
            return True
        self._looks.again()
        if not is_known:
            self._looks.hold_off(self._clock() + self._options.lease_s / 20)
        return False

    async def _suspect(self, draws: Draws) -> list[ClaimedTask]:
        return await self._ask(
            self._store.claim_suspect(self._queues, self._worker_id, self._options.lease_ms, draws.names)
        )

    async def _others(self, draws: Draws) -> list[ClaimedTask]:
        worker_id, lease_ms = self._worker_id, self._options.lease_ms
        if draws.single is None:
            drawn = self._store.claim_drawn(self._queues, worker_id, lease_ms, draws.names, draws.plan)
            return await self._ask(drawn) or []
        if self._store.exchanges and (batch := self._settler.take_along()):
            claimed = await self._exchange(draws.single, batch)
            if claimed is not None:
                return claimed
        share, limit = draws.single
        return await self._ask(self._store.claim_many(self._queues, worker_id, lease_ms, limit, share.names))

    async def _exchange(self, single: tuple[Share, int], batch: Sequence[Item]) -> list[ClaimedTask] | None:
        """Settle and claim in one round trip; None where they have to go apart."""
        share, limit = single
        settlements = [item.settlement for item in batch]
        work = self._store.settle_and_claim(
            self._worker_id, settlements, self._queues, self._options.lease_ms, limit, share.names
        )
        try:
            done = await self._ask(work, patience_s=self._options.lease_s / 3)
        except BaseException:
            self._settler.unanswered(batch)
            raise
        if done is None:
            self._settler.refused(batch)
            return None
        statuses, claimed = done
        self._settler.answered(batch, statuses)
        return claimed

    async def _ask(self, work: Awaitable[T], *, patience_s: float | None = None) -> T:
        """The reply. One that is far too late is not awaited: what was claimed is given back later."""
        if patience_s is None:
            lease_s = self._options.lease_s
            patience_s = min(lease_s - margin(lease_s), max(lease_s / 3, LEAST_PATIENCE_S))
        task = asyncio.ensure_future(work)
        try:
            await wait_for_reply(task, patience_s, "a claim")
        except BaseException:
            self._leave_behind(task)
            raise
        return task.result()

    def _leave_behind(self, task: asyncio.Future[Any]) -> None:
        """It may still take effect on the server, until it has ended for good."""

        def ended(task: asyncio.Future[Any]) -> None:
            self.doubt.is_on = True
            if not task.cancelled():
                task.exception()

        task.cancel()
        task.add_done_callback(ended)
