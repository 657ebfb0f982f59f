"""What the service manager hears: ready, reloading, stopping, a line of status, and the watchdog's pings."""

from __future__ import annotations

import time

from cairnq_supervisor.loop.fleet import Fleet
from cairnq_supervisor.loop.house import House
from cairnq_supervisor.pure.keeper_messages import Ping
from cairnq_supervisor.pure.lifecycle import SeatState
from cairnq_supervisor.system.notify import Notifier

_REST_OF_A_STOP = 10.0
"""Seconds past the drain's deadline that a stop may take: kills, their tasks given back, keeper and gateway."""


class Liaison:
    """Nothing depends on it, and without a service manager nothing of it happens.

    The watchdog is fed while this loop turns and the keeper, where there is one, answers; never by the database.
    """

    def __init__(self, notifier: Notifier, house: House, fleet: Fleet) -> None:
        self._notifier = notifier
        self._house = house
        self._fleet = fleet

    def start(self) -> None:
        if self._notifier.watchdog is not None:
            self._feed(self._notifier.watchdog)

    def ready(self) -> None:
        """At the start, and after each reload however it went."""
        self._notifier.tell(READY=1, STATUS=self._line("running"))

    def reloading(self) -> None:
        self._notifier.tell(RELOADING=1, MONOTONIC_USEC=time.monotonic_ns() // 1000, STATUS=self._line("reloading"))

    def stopping(self, drain_timeout: float) -> None:
        """The manager's own patience counts from the stop; a longer drain needs more."""
        patience = round((drain_timeout + _REST_OF_A_STOP) * 1e6)
        self._notifier.tell(STOPPING=1, EXTEND_TIMEOUT_USEC=patience, STATUS=self._line("draining"))

    def _feed(self, watchdog: float) -> None:
        """Twice within each period, and the keeper is asked for the next time."""
        if self._keeper_answers(watchdog):
            self._notifier.tell(WATCHDOG=1)
        self._fleet.keeper.say(Ping())
        self._house.reactor.call_after(watchdog / 2, lambda: self._feed(watchdog))

    def _keeper_answers(self, watchdog: float) -> bool:
        """One that is being replaced is the supervisor's concern, and no reason to end the tree."""
        keeper = self._fleet.keeper
        heard = max(keeper.answered_at, keeper.ready_since or 0.0)
        return keeper.state is not SeatState.READY or self._house.clock() - heard < watchdog

    def _line(self, state: str) -> str:
        workers, queues = self._fleet.workers, len(self._fleet.roster.queues)
        ready = sum(worker.state is SeatState.READY for worker in workers)
        return f"{state}: {ready} of {len(workers)} workers ready on {queues} queue{'' if queues == 1 else 's'}"
