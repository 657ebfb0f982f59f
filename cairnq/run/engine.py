"""The worker itself: claims, calls handlers, settles, drains. No signals, no threads but those of plain handlers."""

from __future__ import annotations

from collections.abc import Sequence

from cairnq.pure.clock import Clock, boottime
from cairnq.pure.models import Held
from cairnq.run.emit import Emit
from cairnq.run.leases import LeaseTable
from cairnq.run.options import EngineOptions
from cairnq.run.registry import Registry
from cairnq.store.base import TaskStore

__all__ = ["Engine", "EngineOptions"]


class Engine:
    """Made and used on one event loop. `table_capacity` says how large a table it needs."""

    def __init__(
        self,
        store: TaskStore,
        registry: Registry,
        queues: Sequence[str],
        options: EngineOptions,
        *,
        table: LeaseTable,
        worker_id: str,
        emit: Emit,
        clock: Clock = boottime,
    ) -> None:
        raise NotImplementedError

    @staticmethod
    def table_capacity(registry: Registry, options: EngineOptions) -> int:
        """Leases that this worker may hold at once: running ones, and as many again on their way in and out."""
        raise NotImplementedError

    async def run(self) -> None:
        """Claim and run tasks until a `drain` ended. Raises only what is a bug in cairnq."""
        raise NotImplementedError

    def wake(self) -> None:
        """There may be work: look now, after 25 ms and after 100 ms, then poll. Kept until a closed gate opens."""
        raise NotImplementedError

    def set_polling(self, polling: bool) -> None:
        """False: somebody else proves that there is nothing to look for, and wakes this engine."""
        raise NotImplementedError

    def quiesce(self) -> None:
        """Stop claiming; rows that never started are released."""
        raise NotImplementedError

    def resume(self) -> None:
        """Claim again, after the outcome of every release is known."""
        raise NotImplementedError

    def leases_changed(self) -> None:
        """Verdicts or cancel requests were written into the table: look. To be called on the engine's loop."""
        raise NotImplementedError

    async def drain(self, deadline: float) -> list[Held]:
        """Quiesce, run out, settle; at `deadline` (an instant of the clock) cancel, release, and stop.

        Returns the attempts that could not be ended: plain functions still on their threads, and handlers that
        swallowed their cancellation. Their contexts write nothing any more; their leases end with the process.
        """
        raise NotImplementedError
