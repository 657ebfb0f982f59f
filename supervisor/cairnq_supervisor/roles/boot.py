"""What a worker child looks at before it says that it is ready: its application, its size, its clock."""

from __future__ import annotations

import os

from cairnq.run.leases import margin
from cairnq.run.registry import Registry
from cairnq_supervisor.pure import dsn
from cairnq_supervisor.pure.settings import QueueSettings
from cairnq_supervisor.roles.application import (
    ApplicationError,
    application_faults,
    forget_modules,
    load_registry,
    registry_for,
)
from cairnq_supervisor.roles.plan import WorkerPlan
from cairnq_supervisor.system.processes import resident_bytes
from cairnq_supervisor.system.wall import wall_offset


def boot(plan: WorkerPlan) -> Registry:
    """The handlers that this worker runs. Raises `ApplicationError`."""
    registry = plan.registry or _import(plan)
    _check_size(plan)
    _check_clock(plan)
    return registry_for(registry, plan.queue)


def size_fault(queue: QueueSettings) -> str | None:
    """Why this process, with the application in it, cannot be a worker: a limit that is passed from the beginning
    would replace one after another.
    """
    limit, size = queue.max_rss, resident_bytes(os.getpid())
    if limit is None or size is None or size <= limit:
        return None
    key = f"queues.{queue.name}.max_rss"
    return f"{key} is {limit >> 20} MiB, but a worker takes {size >> 20} MiB when it has booted"


def _check_size(plan: WorkerPlan) -> None:
    if reason := size_fault(plan.queue):
        raise ApplicationError(reason)


def _check_clock(plan: WorkerPlan) -> None:
    """On SQLite the clock of whoever writes decides when a lease ends: one for all, or tasks would run twice."""
    off = wall_offset() - plan.wall_offset
    if dsn.is_sqlite(plan.settings.database) and abs(off) > margin(plan.queue.lease):
        raise ApplicationError(
            f"the worker's clock is {off:+,.1f} s off the supervisor's, and on SQLite leases end by it: "
            "see whether the application, or a library in LD_PRELOAD, sets its own time"
        )


def _import(plan: WorkerPlan) -> Registry:
    """What preload would have done before the fork, and found."""
    forget_modules(plan.stale_modules)
    registry = load_registry(plan.settings.app)
    faults = application_faults(registry, plan.settings, plan.settings.app)
    if faults:
        raise ApplicationError("; ".join(str(fault) for fault in faults))
    return registry
