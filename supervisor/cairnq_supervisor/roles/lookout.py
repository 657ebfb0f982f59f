"""The keeper's look at what is ahead, in the workers' place: what is due, when the next one is, which leases ended.

One statement serves the whole host. While notifications arrive the workers do not poll at all; this look finds what no
notification tells of: a task whose time has come, and the rare one that was committed after its notification.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence

from cairnq.pure.clock import Clock, boottime
from cairnq.pure.models import Outlook
from cairnq_supervisor.roles.bells import Bells
from cairnq_supervisor.roles.connection import Connection
from cairnq_supervisor.roles.link import Link

INTERVAL = 3.0
"""Seconds, with jitter. With the self-test of LISTEN and the upkeep that makes less than a statement in two seconds."""

SOONEST = 0.1
"""Seconds between two looks at least, however many tasks become due one after the other; and from a notification to the
next look: until then whoever was woken has the server to himself."""

AFTER_NEWS = 0.5
"""Seconds after a look at which there is another one if a notification came (it may be of a task that is due soon), or
if this one found news (whoever was woken may have no room for it, and only the next look wakes the others)."""

_RECOVERY_CEILING = 5.0
"""Seconds between two looks for expired leases, at most (PROTOCOL: min(lease/3, 5 s))."""

_RECOVERY_BATCH = 1000
_BOUND = 10_000
"""Of what runs, no more is read to learn whether something runs in these queues."""


def longest_pause(outlook: Outlook, due_before: frozenset[str]) -> float:
    """Seconds until the next look, at most, by what this one found; `due_before`: what the one before it did."""
    pause = INTERVAL
    if outlook.next_in_ms is not None:
        pause = min(pause, max(SOONEST, outlook.next_in_ms / 1000))
    if outlook.due - due_before:
        pause = min(pause, AFTER_NEWS)
    return pause


def next_look(until: float, *, looked_at: float, heard_at: float) -> float:
    """The instant of the look that a notification calls for; `until`: of the one that was planned."""
    return min(until, max(looked_at + AFTER_NEWS, heard_at + SOONEST))


class Lookout:
    """`queues` may change; `lease` is the shortest one of this host, in seconds.

    `may_recover()` is asked before each recovery, `on_sight()` called whenever `sees` has changed.
    """

    def __init__(
        self,
        connection: Connection,
        link: Link,
        bells: Bells,
        queues: Sequence[str],
        *,
        lease: float,
        may_recover: Callable[[], bool],
        on_sight: Callable[[], None],
        clock: Clock = boottime,
    ) -> None:
        self._connection = connection
        self._link = link
        self._bells = bells
        self._queues = queues
        self._may_recover = may_recover
        self._on_sight = on_sight
        self._clock = clock
        self._due: frozenset[str] = frozenset()
        self._news = asyncio.Event()
        self._heard_at = float("-inf")
        self._recover_at = float("inf")
        self.adapt(lease)
        self.sees = False
        """The latest look was answered."""

        self.is_idle = False
        """At the last look nothing was due and nothing ran: there is nothing to count."""

    def adapt(self, lease: float) -> None:
        """From now on this is the shortest lease; a look that was planned by a longer one comes sooner."""
        self._lease = lease
        self._recovery_interval = min(lease / 3, _RECOVERY_CEILING)
        self._recover_at = min(self._recover_at, self._clock() + self._recovery_interval)
        self._news.set()

    def heard(self, queue: str) -> None:
        """A notification came. What it tells of may be due later; or of a queue that only other hosts have."""
        if queue in self._queues:
            self._bells.ring_one(queue)
            self._heard_at = self._clock()
            self._news.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._news.clear()
            looked_at = self._clock()
            outlook = await self._look(looked_at)
            if self.sees != (outlook is not None):
                self.sees = outlook is not None
                self._on_sight()
            pause = min(INTERVAL, self._recovery_interval) * random.uniform(0.9, 1.1)  # noqa: S311 - jitter
            if outlook is not None:
                pause = min(pause, longest_pause(outlook, self._due))
                self._tell(outlook)
                if outlook.expired:
                    await self._recover()
            await self._rest(looked_at, looked_at + pause)

    async def _look(self, now: float) -> Outlook | None:
        is_time = now >= self._recover_at
        outlook = await self._connection.ask(
            "look", lambda store: store.outlook(self._queues, _BOUND, expired=is_time), patience=self._lease / 3
        )
        if is_time and outlook is not None:
            # Jitter keeps the hosts of one database from asking together.
            self._recover_at = now + self._recovery_interval * random.uniform(0.8, 1.0)  # noqa: S311 - not a secret
        return outlook

    def _tell(self, outlook: Outlook) -> None:
        """Of what is due once; of what is still due at the next look to everybody who has room."""
        for queue in sorted(outlook.due):
            (self._bells.ring_all if queue in self._due else self._bells.ring_one)(queue)
        self._due = outlook.due
        self.is_idle = not outlook.due and not outlook.busy

    async def _recover(self) -> None:
        """Leases of dead hosts, of any queue."""
        recovered, count = 0, _RECOVERY_BATCH
        while count == _RECOVERY_BATCH and self._may_recover():
            count = (
                await self._connection.ask("recover", lambda s: s.recover(_RECOVERY_BATCH), patience=self._lease) or 0
            )
            recovered += count
        if recovered:
            self._link.emit("lease.recovered", count=recovered)

    async def _rest(self, looked_at: float, until: float) -> None:
        """Until then, or for a little while after a notification."""
        loop = asyncio.get_running_loop()
        alarm = loop.call_later(max(0.0, until - self._clock()), self._news.set)
        await self._news.wait()
        alarm.cancel()
        await asyncio.sleep(next_look(until, looked_at=looked_at, heard_at=self._heard_at) - self._clock())
