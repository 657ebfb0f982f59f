"""Settlements as the settling statements take them: in rounds and columns on the way in, in order on the way out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from cairnq.db.session import Row
from cairnq.pure.models import Outcome, Settlement, TaskStatus

Statuses = list[TaskStatus | None]


def settlement_values(worker_id: str, settlements: Sequence[Settlement]) -> dict[str, Any]:
    return {
        "worker_id": worker_id,
        "ids": [item.task_id for item in settlements],
        "attempts": [item.attempt for item in settlements],
        "outcomes": [item.outcome.value for item in settlements],
        "bodies": [item.body for item in settlements],
        "delays_ms": [item.delay_ms for item in settlements],
    }


def each_task_once(settlements: Sequence[Settlement]) -> list[list[int]]:
    """Positions, in rounds: a statement names each task once, so that its answer for a task is that of one attempt."""
    if len({item.task_id for item in settlements}) == len(settlements):
        return [list(range(len(settlements)))] if settlements else []
    rounds: list[list[int]] = []
    named: Counter[str] = Counter()
    for position, item in enumerate(settlements):
        nth = named[item.task_id]
        named[item.task_id] += 1
        if nth == len(rounds):
            rounds.append([])
        rounds[nth].append(position)
    return rounds


def kept(item: Settlement) -> Settlement:
    """What was to be forgotten, as a completion."""
    return item._replace(outcome=Outcome.COMPLETE) if item.outcome is Outcome.FORGET else item


def align(settlements: Sequence[Settlement], found: Sequence[Row]) -> Statuses:
    by_id: dict[str, TaskStatus] = {row[0]: row[1] for row in found}
    return [by_id.get(item.task_id) for item in settlements]
