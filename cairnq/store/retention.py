"""Deletes finished tasks that are old enough, in bounded batches, for as long as a client is open."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cairnq.pure import arguments
from cairnq.pure.errors import InvalidArgument
from cairnq.pure.models import TaskStatus
from cairnq.store.base import TaskStore

log = logging.getLogger("cairnq.retention")


@dataclass(frozen=True, slots=True)
class Retention:
    """`older_than_ms`: the age since the end at which a task goes; one number, or one by status (others stay).

    `interval_ms`: from one sweep to the next. `limit`: rows a statement. `on_error(error)`: told of a failed sweep,
    which is tried again at the next interval (what it raises goes to the loop's exception handler); without it the
    failure is logged.
    """

    older_than_ms: int | Mapping[TaskStatus, int]
    interval_ms: int = 3_600_000
    limit: int = 1000
    on_error: Callable[[Exception], None] | None = None

    def __post_init__(self) -> None:
        arguments.integer(self.interval_ms, "retention interval_ms", least=1, most=2**53)
        arguments.integer(self.limit, "retention limit", least=1, most=1_000_000)
        for status, age in self.rules():
            if status is not None:
                arguments.terminal_status(status)
            arguments.integer(age, "retention older_than_ms", least=0, most=2**53)

    @classmethod
    def of(cls, given: int | Retention | None) -> Retention | None:
        """An age alone is a retention with the defaults."""
        if given is None or isinstance(given, Retention):
            return given
        if isinstance(given, int):
            return cls(given)
        raise InvalidArgument(f"retention must be a number of ms or a Retention, not {type(given).__name__}: {given!r}")

    def rules(self) -> list[tuple[TaskStatus | None, int]]:
        if isinstance(self.older_than_ms, Mapping):
            return list(self.older_than_ms.items())
        return [(None, self.older_than_ms)]


class Sweeper:
    """Sweeps at once, then every `interval_ms`, until `stop()`."""

    def __init__(self, store: TaskStore, retention: Retention) -> None:
        self._store = store
        self._retention = retention
        self._task = asyncio.create_task(self._run(), name="cairnq retention")

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _run(self) -> None:
        while True:
            try:
                await sweep(self._store, self._retention)
            except Exception as error:  # noqa: BLE001 - the border of a background loop: reported, and tried again
                if self._retention.on_error is not None:
                    # From the loop itself, so that a callback that raises does not end the sweeps.
                    asyncio.get_running_loop().call_soon(self._retention.on_error, error)
                else:
                    log.warning("retention sweep failed, next in %d ms: %s", self._retention.interval_ms, error)
            await asyncio.sleep(self._retention.interval_ms / 1000)


async def sweep(store: TaskStore, retention: Retention) -> int:
    """One sweep of all rules; returns how many tasks were deleted."""
    deleted = 0
    for status, age in retention.rules():
        while True:
            gone = await store.purge(older_than_ms=age, status=status, limit=retention.limit)
            deleted += len(gone)
            if len(gone) < retention.limit:
                break
    return deleted
