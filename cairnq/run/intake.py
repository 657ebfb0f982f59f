"""Takes in what a claim brought: enters it, lets it start, and gives back or refuses what must not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cairnq.db.replies import within
from cairnq.pure.envelope import envelope
from cairnq.pure.models import Beat, ClaimedTask, Settlement, Task
from cairnq.run import outcomes
from cairnq.run.attempt import Attempt
from cairnq.run.context import Desk
from cairnq.run.doubt import Doubt
from cairnq.run.executor import Executor
from cairnq.run.holdings import Holdings
from cairnq.run.leases import MAX_ID_BYTES, LeaseTable
from cairnq.run.settler import Settler
from cairnq.run.trust import trust_end


class Intake:
    """Between a claim's reply and the executor."""

    def __init__(self, desk: Desk, holdings: Holdings, executor: Executor, settler: Settler, doubt: Doubt) -> None:
        self._store = desk.store
        self._worker_id = desk.worker_id
        self._options = desk.options
        self._clock = desk.clock
        self._outage = desk.outage
        self._holdings = holdings
        self._executor = executor
        self._settler = settler
        self._doubt = doubt

    async def take(self, claimed: Sequence[ClaimedTask], sent: float, *, is_outdated: Callable[[], bool]) -> None:
        """Enter everything into the lease table, and only then let any of it start. `sent`: when the claim went out.

        `is_outdated()`: claiming was to stop since then, so that what came goes back.
        """
        attempts = self._holdings.hold([row for row in claimed if LeaseTable.fits(row.task.id)], sent)
        odd = [] if len(attempts) == len(claimed) else [row.task for row in claimed if not LeaseTable.fits(row.task.id)]
        if trust_end(sent, self._options.lease_s) - self._clock() < self._options.lease_s / 3:
            attempts = await self._renew(attempts)
        if is_outdated():
            self._release(attempts)
        else:
            self._executor.accept(attempts)
        if odd:
            await self._refuse(odd)

    async def _refuse(self, tasks: Sequence[Task]) -> None:
        """Rows that somebody wrote by hand, past the protocol: left queued, they would come back for ever.

        After all others, which an outage must not hold up. What it leaves undone is given back, and comes once more.
        """
        error = envelope("InvalidId", "invalid_id", f"the task's id is over {MAX_ID_BYTES} bytes", retryable=False)
        refusals = [Settlement.fail(task.id, task.attempt, error, retryable=False) for task in tasks]
        work = self._store.settle_many(self._worker_id, refusals)
        if None in await within(work, self._options.lease_s / 3, "a refusal"):
            self._doubt.is_on = True

    async def _renew(self, attempts: Sequence[Attempt]) -> list[Attempt]:
        """The reply was slow: those whose lease could be renewed. The others go back, never having started."""
        beats = [Beat(a.task.id, self._worker_id, a.task.attempt, self._options.lease_ms) for a in attempts]
        sent = self._clock()
        try:
            replies = await within(self._store.beat_many(beats), self._options.lease_s / 6, "a claim's first beat")
        except Exception as error:
            if not self._outage.is_of_database(error):
                raise
            self._outage.failed(error, "claim", asked_at=sent)
            replies = [None] * len(beats)
        renewed = []
        for attempt, reply in zip(attempts, replies, strict=True):
            if reply is not None and attempt.slot is not None:
                attempt.table.extend(attempt.slot, sent=sent)
                renewed.append(attempt)
        self._release([attempt for attempt in attempts if attempt not in renewed])
        return renewed

    def _release(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            self._settler.put(attempt, outcomes.released(attempt, started=False))
