"""What a run came to: the seed, the faults, the tasks, and the audit with the records of those that were wronged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cairnq_supervisor.torture.audit import Breach, history_of
from cairnq_supervisor.torture.evidence import Deed, Evidence

SHOWN_BREACHES = 20
"""Of one check. The rest are counted."""


@dataclass(frozen=True, slots=True)
class Report:
    """`wrongs`: what processes and clients did that no fault from outside excuses. `folder`: of the logs."""

    seed: int
    seconds: float
    hosts: int
    injected: Mapping[str, int]
    missed: Mapping[str, int]
    refused: Mapping[str, int]
    exits: Mapping[int, int]
    evidence: Evidence
    breaches: Mapping[str, Sequence[Breach]]
    wrongs: Sequence[str]
    folder: Path

    @property
    def passed(self) -> bool:
        return not self.wrongs and not any(self.breaches.values())

    @property
    def faults(self) -> int:
        return sum(self.injected.values())

    @property
    def statuses(self) -> Counter[str]:
        """Tasks by status at the end; `forgotten` are those whose rows are gone, as they were to be."""
        counts = Counter(row.status for row in self.evidence.rows.values())
        counts["forgotten"] = len(self.evidence.noted(Deed.SUBMITTED) - self.evidence.rows.keys())
        return counts

    @property
    def called_again(self) -> int:
        """Tasks that were called more than once."""
        calls = Counter(run.task_id for run in self.evidence.runs)
        return sum(count > 1 for count in calls.values())

    def data(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "seed": self.seed,
            "seconds": self.seconds,
            "hosts": self.hosts,
            "passed": self.passed,
            "faults": {"injected": self.faults, "by_kind": dict(self.injected), "missed": dict(self.missed)},
            "tasks": {
                "acknowledged": len(self.evidence.noted(Deed.SUBMITTED)),
                "by_status": dict(self.statuses),
                "calls": len(self.evidence.runs),
                "called_again": self.called_again,
            },
            "unacknowledged": dict(self.refused),
            "supervisor_exits": {str(code): count for code, count in self.exits.items()},
            "audit": [
                {"check": check, "breaches": [self._breach(breach) for breach in found]}
                for check, found in self.breaches.items()
            ],
            "wrongs": list(self.wrongs),
        }

    def _breach(self, breach: Breach) -> dict[str, Any]:
        changes, runs = history_of(self.evidence, breach.task_id)
        row = self.evidence.rows.get(breach.task_id)
        return {
            "task_id": breach.task_id,
            "what": breach.what,
            "row": None if row is None else asdict(row),
            "changes": [asdict(change) for change in changes],
            "calls": [asdict(run) for run in runs],
        }
