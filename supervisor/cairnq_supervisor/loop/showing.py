"""What the fleet shows of itself: the report of `cairnq status`, all that the gateway renders, the title in `ps`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from cairnq_supervisor.loop.fleet import Fleet
from cairnq_supervisor.loop.house import House
from cairnq_supervisor.loop.report import report
from cairnq_supervisor.pure.lifecycle import FleetState
from cairnq_supervisor.system.journal import Journal
from cairnq_supervisor.system.title import show_title


class Showing:
    """`house()`, `state()` and `gateway()`: as they are when somebody looks."""

    def __init__(
        self,
        fleet: Fleet,
        journal: Journal,
        *,
        house: Callable[[], House],
        state: Callable[[], FleetState],
        gateway: Callable[[], dict[str, Any] | None],
    ) -> None:
        self._fleet = fleet
        self._journal = journal
        self._house = house
        self._state = state
        self._gateway = gateway
        self._started_at = time.time()
        self._title = ""

    def report(self) -> Mapping[str, Any]:
        return report(
            self._fleet,
            self._house(),
            gateway=self._gateway(),
            state=self._state(),
            pid=os.getpid(),
            started_at=self._started_at,
            latest=self._journal.latest,
        )

    def document(self) -> dict[str, Any]:
        """All that the gateway renders."""
        return {
            "status": self.report(),
            "tallies": self._fleet.tallies(),
            "chronicle": self._journal.chronicle.encoded(),
        }

    def title(self) -> None:
        """Show it, if it has changed."""
        application = self._house().settings.app.partition(":")[0]
        queues, workers = len(self._fleet.roster.queues), len(self._fleet.workers)
        title = f"cairnq: supervisor {application} {queues} queues {workers} workers"
        if title != self._title:
            self._title = title
            show_title(title)
