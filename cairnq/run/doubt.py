"""After a lost reply: what the database says is this worker's, and what of it the worker has never heard of."""

from __future__ import annotations

from cairnq.db.replies import within
from cairnq.pure.models import Standing
from cairnq.run.context import Desk
from cairnq.run.holdings import Holdings


class Doubt:
    """`is_on` from a lost reply until nothing can be held that nobody knows of."""

    def __init__(self, desk: Desk, holdings: Holdings) -> None:
        self._store = desk.store
        self._worker_id = desk.worker_id
        self._patience_s = desk.options.lease_s / 3
        self._clock = desk.clock
        self._outage = desk.outage
        self._holdings = holdings
        self.is_on = False

    async def clear_up(self) -> bool:
        """Give back what was never heard of. False: not done yet. Raises what the store raises."""
        self.is_on = False
        try:
            stray = self._holdings.unknown(
                await within(self._store.held_by(self._worker_id), self._patience_s, "reading what is held")
            )
            if not stray:
                return True
            work = self._store.release_many(self._worker_id, stray)
            statuses = await within(work, self._patience_s, "a release")
            unsure = [held for held, status in zip(stray, statuses, strict=True) if status is None]
            read_back = self._store.standing_many(self._worker_id, unsure)
            standings = await within(read_back, self._patience_s, "a read-back")
        except BaseException:
            self.is_on = True
            raise
        self.is_on = self.is_on or Standing.HELD in standings
        return not self.is_on

    async def clear_up_before_leaving(self, patience_s: float) -> None:
        """Once, for so long: no next claim will ask."""
        asked_at = self._clock()
        try:
            await within(self.clear_up(), patience_s, "reading what is held")
        except Exception as error:
            if not self._outage.is_of_database(error):
                raise
            self.is_on = True
            self._outage.failed(error, "claim", asked_at=asked_at)
