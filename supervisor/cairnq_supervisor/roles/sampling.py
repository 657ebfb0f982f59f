"""The keeper's look at how much waits in the queues of this host: for status and metrics, scaling and suspects."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence

from cairnq.pure.models import QueueBacklog
from cairnq_supervisor.pure.keeper_messages import Sampled
from cairnq_supervisor.roles.connection import Connection
from cairnq_supervisor.roles.link import Link

INTERVAL = 5.0
"""Seconds, with jitter."""

BOUND = 10_000
"""Counted no further: the question costs the same with a million tasks waiting."""

_NOTHING = (0, 0, None, 0)


class Sampling:
    """`queues` may change. Nothing is said while nothing waits and nothing runs, so that an idle host sleeps."""

    def __init__(
        self,
        connection: Connection,
        link: Link,
        queues: Sequence[str],
        *,
        patience: float,
        is_idle: Callable[[], bool],
    ) -> None:
        """`is_idle()`: somebody has just seen that there is nothing to count."""
        self._connection = connection
        self._link = link
        self._queues = queues
        self.patience = patience
        self._is_idle = is_idle
        self._soon = asyncio.Event()
        self._is_asked = False

    def look_soon(self) -> None:
        """Something has happened that the supervisor should hear of before the next turn, whatever was seen before."""
        self._is_asked = True
        self._soon.set()

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        said: dict[str, tuple[int, int, int | None, int]] = {}
        while True:
            self._soon.clear()
            is_asked, self._is_asked = self._is_asked, False
            found: Mapping[str, QueueBacklog] | None = {}
            if is_asked or not self._is_idle():
                found = await self._connection.ask(
                    "backlog", lambda store: store.backlog(self._queues, BOUND), patience=self.patience
                )
            if found is not None:
                counted = {queue: (one.due, one.running, one.oldest_ms, one.suspects) for queue, one in found.items()}
                sample = {queue: numbers for queue, numbers in counted.items() if numbers != _NOTHING}
                if sample or said:
                    self._link.send(Sampled({queue: list(numbers) for queue, numbers in sample.items()}))
                said = sample
            turn = loop.call_later(INTERVAL * random.uniform(0.8, 1.2), self._soon.set)  # noqa: S311 - jitter
            await self._soon.wait()
            turn.cancel()
