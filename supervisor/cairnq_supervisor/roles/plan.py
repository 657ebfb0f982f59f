"""What a worker child is made of, as the supervisor decides it before the fork."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from cairnq.run.options import EngineOptions
from cairnq.run.registry import Registry
from cairnq.store.base import Installation
from cairnq_supervisor.pure.ledger import Ledger, Place
from cairnq_supervisor.pure.settings import QueueSettings, Settings
from cairnq_supervisor.system.bell import Bell
from cairnq_supervisor.system.stacks import StackBook

CANCEL_GRACE = 1.0
"""Seconds past a drain's deadline that cancelled handlers get to return."""

SUSPECTS_POLL = 2.0
"""Seconds between two looks of a worker that runs suspects, at most. Nobody wakes it, for nothing notifies of suspects:
a `poll` that is long because the keeper looks for all the others would leave them standing."""


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """Everything that one worker incarnation is made of. `registry` None: the child imports the application itself."""

    settings: Settings
    queue: QueueSettings
    slot: int | str
    worker_id: str
    registry: Registry | None
    installation: Installation
    stale_modules: frozenset[str]
    """To be imported anew, where the child imports the application itself."""
    capacity: int
    memory: memoryview = field(repr=False)
    """Of the lease table, which the supervisor reads too."""
    ledger: Ledger = field(repr=False)
    """Of payload bytes, with a row for this worker."""
    place: Place
    stacks: StackBook
    bell: Bell
    """Rung when there may be work."""
    unit_locks: tuple[Path, str] | None
    """Folder and stem of the files whose locks go with units of resources."""
    wall_offset: float
    """The supervisor's, when it forked."""

    @property
    def title(self) -> str:
        return f"cairnq: worker {self.queue.name}/{self.slot}"


def engine_options(settings: Settings, queue: QueueSettings) -> EngineOptions:
    return EngineOptions(
        concurrency=queue.concurrency,
        lease_s=queue.lease,
        poll_interval_s=min(queue.poll, SUSPECTS_POLL) if queue.quarantine else queue.poll,
        retry_backoff_ms=round(queue.retry_backoff * 1000),
        retry_backoff_max_ms=round(queue.retry_backoff_max * 1000),
        max_run_s=queue.max_run,
        resources=settings.resources,
        cancel_grace_s=CANCEL_GRACE,
        suspects_only=queue.quarantine,
    )
