"""What a worker child looks at before it says that it is ready: its application, its size, its clock."""

from __future__ import annotations

import os

from cairnq.run.registry import Registry
from cairnq.run.trust import margin
from cairnq_supervisor.pure import dsn
from cairnq_supervisor.pure.judging import WORKING_BYTES
from cairnq_supervisor.pure.quantities import format_size
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


def size_fault(queue: QueueSettings, booted: int | None) -> str | None:
    """Why a worker that has so many bytes when it has booted cannot be one of this queue: a limit that it passes with
    its first calls would replace one after another.
    """
    limit = queue.max_rss
    if limit is None or booted is None or booted + WORKING_BYTES <= limit:
        return None
    has = f"a worker takes {format_size(booted)} when it has booted, and some {format_size(WORKING_BYTES)} more at work"
    return f"queues.{queue.name}.max_rss is {format_size(limit)}, but {has}"


def _check_size(plan: WorkerPlan) -> None:
    if reason := size_fault(plan.queue, resident_bytes(os.getpid())):
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
