"""What a keeper asks of a store beside leases: how much waits, and who has a duty that one host has for all."""

from __future__ import annotations

from collections.abc import Sequence

from cairnq.pure import arguments
from cairnq.pure.models import QueueBacklog
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
