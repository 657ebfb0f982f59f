"""A worker counts what becomes of its tasks, and tells the supervisor at most once a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cairnq.pure.clock import Clock, boottime
from cairnq.pure.models import Outcome
from cairnq.run.attempt import Attempt
from cairnq_supervisor.pure.messages import Message, Tallied
from cairnq_supervisor.pure.tally import Fate, Tally

INTERVAL = 1.0
"""Seconds. What a worker that dies has counted since is lost; its deaths are counted elsewhere."""

_BY_STATUS = {"succeeded": Fate.SUCCEEDED, "failed": Fate.FAILED, "canceled": Fate.CANCELED, "queued": Fate.RETRIED}
_RELEASES = frozenset({Outcome.RELEASE, Outcome.INTERRUPT})


class Tallying:
    """An observer of the engine, made on its loop."""

    def __init__(self, say: Callable[[Message], None], clock: Clock = boottime) -> None:
        self._say = say
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._tally = Tally()
        self._timer: asyncio.TimerHandle | None = None

    def claimed(self, attempt: Attempt) -> None:
        """Both times are the database's: when it was due, and when the claim stamped it."""
        task = attempt.task
        self._tally.claimed(task.name, waited=(task.updated_at_ms - task.run_at_ms) / 1000)
        if self._timer is None:
            self._tell_soon()

    def closed(self, attempt: Attempt) -> None:
        took = None
        if attempt.started_at is not None:
            took = (attempt.ended_at or self._clock()) - attempt.started_at
        self._tally.ended(attempt.task.name, fate_of(attempt), took=took)
        if self._timer is None:
            self._tell_soon()

    def tell(self) -> None:
        """Now, for this may be the last time."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._say(Tallied(self._tally.encoded()))

    def _tell_soon(self) -> None:
        self._timer = self._loop.call_later(INTERVAL, self.tell)


def fate_of(attempt: Attempt) -> Fate:
    """Of an attempt that is closed."""
    if attempt.status is None or attempt.settlement is None:
        return Fate.LOST
    if attempt.status == "queued" and attempt.settlement.outcome in _RELEASES:
        return Fate.RELEASED
    return _BY_STATUS[attempt.status]
