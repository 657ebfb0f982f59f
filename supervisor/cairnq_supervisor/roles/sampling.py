"""The keeper's look at how much waits in the queues of this host, for status and metrics."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from cairnq_supervisor.pure.messages import Sampled
from cairnq_supervisor.roles.connection import Connection
from cairnq_supervisor.roles.link import Link

INTERVAL = 5.0
"""Seconds, with jitter."""

BOUND = 10_000
"""Counted no further: the question costs the same with a million tasks waiting."""


async def sample_for_ever(connection: Connection, link: Link, queues: Sequence[str], *, patience: float) -> None:
    """Until cancelled. Nothing is said while nothing waits and nothing runs, so that an idle host sleeps.

    `queues` may change.
    """
    said: dict[str, tuple[int, int, int | None]] = {}
    while True:
        found = await connection.ask("backlog", lambda store: store.backlog(queues, BOUND), patience=patience)
        if found is not None:
            counted = {queue: (one.due, one.running, one.oldest_ms) for queue, one in found.items()}
            sample = {queue: numbers for queue, numbers in counted.items() if numbers != (0, 0, None)}
            if sample or said:
                link.send(Sampled({queue: list(numbers) for queue, numbers in sample.items()}))
            said = sample
        await asyncio.sleep(INTERVAL * random.uniform(0.8, 1.2))  # noqa: S311 - jitter, not a secret
