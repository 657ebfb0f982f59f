"""What every seat shares: the loop, the clock, the journal, the descriptors that are the supervisor's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cairnq.pure.clock import Clock
from cairnq.run.registry import Registry
from cairnq.store.base import Installation
from cairnq_supervisor.loop.outages import Outages
from cairnq_supervisor.loop.reactor import Reactor
from cairnq_supervisor.pure.settings import Settings
from cairnq_supervisor.system.descriptors import Descriptors
from cairnq_supervisor.system.oom import OomKills


@dataclass(frozen=True, slots=True)
class House:
    """`registry` is the preloaded application, None where the children import it themselves."""

    settings: Settings
    installation: Installation
    registry: Registry | None
    reactor: Reactor
    descriptors: Descriptors
    emit: Callable[..., Any]
    outages: Outages
    clock: Clock
    oom_kills: OomKills
    unit_locks: tuple[Path, str] | None = None
    """Folder and stem of the files whose locks go with units of resources."""
    pids: set[int] = field(default_factory=set)
    """Children that are watched by their pidfds."""
    resource_queues: frozenset[str] = frozenset()
    """Queues that use a resource: a successor can do little before the old worker has given up its units."""
    stale_modules: frozenset[str] = frozenset()
    """Modules of an application that was preloaded and is not the current one any more."""
