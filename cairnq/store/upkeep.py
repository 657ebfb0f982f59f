"""What a keeper asks of a store beside leases: what waits, what is to come, who has a duty that one has for all."""

from __future__ import annotations

from collections.abc import Sequence

from cairnq.pure import arguments
from cairnq.pure.models import Outlook, QueueBacklog
from cairnq.store.runner import StatementRunner


class Upkeep(StatementRunner):
    async def backlog(self, queues: Sequence[str], bound: int) -> dict[str, QueueBacklog]:
        """By queue. Reads at most `bound` index entries for each, and as many of what runs."""
        found = await self._rows(
            "backlog",
            queues=arguments.names(queues, "queues"),
            bound=arguments.integer(bound, "bound", least=1, most=2**31),
        )
        return {queue: QueueBacklog(*counted) for queue, *counted in found}

    async def outlook(self, queues: Sequence[str], bound: int, *, expired: bool) -> Outlook:
        """One statement. Reads at most `bound` of what runs, but all of it where leases that are over are asked for."""
        found = await self._rows(
            "outlook",
            ["expired"] if expired else [],
            queues=arguments.names(queues, "queues"),
            bound=arguments.integer(bound, "bound", least=1, most=2**31),
        )
        return Outlook(
            due=frozenset(row[0] for row in found if row[1]),
            busy=frozenset(row[0] for row in found if row[2]),
            next_in_ms=min((row[3] for row in found if row[3] is not None), default=None),
            expired=any(row[4] for row in found) if expired else None,
        )

    async def take_duty(self, duty: str, holder: str, lease_ms: int) -> bool:
        """Whether `duty` is this holder's now, for `lease_ms` from now; asked again in time, it stays so.

        `holder` must be new with each process: it stands in `cairnq_meta`, and whoever knows it has the duty.
        """
        found = await self._rows(
            "take_duty",
            duty=arguments.text(duty, "duty", max_bytes=arguments.MAX_INDEXED_BYTES),
            holder=arguments.text(holder, "holder", max_bytes=arguments.MAX_INDEXED_BYTES),
            lease_ms=arguments.integer(lease_ms, "lease_ms", least=1, most=arguments.MAX_DELAY_MS),
        )
        return bool(found)
