"""Who holds which unit of which resource. A unit is with one process at a time: handed out, asked back, given back.

Every method returns the orders that follow from it. A unit counts as held until its holder has given it back, or is
reaped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

SLICE = 5.0
"""Seconds for which a queue keeps a unit before another queue, whose work waits, may ask for it."""


class Order(NamedTuple):
    """`grant`: this unit is yours; otherwise: give it back when no call needs it."""

    worker_id: str
    resource: str
    unit: int
    grant: bool


@dataclass(slots=True)
class _Member:
    """A ready worker that uses the resource. `units`: when each was granted; `asked`: those that are to come back."""

    queue: str
    most: int
    units: dict[int, float] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)
    retired: bool = False
    served_at: float = float("-inf")

    @property
    def kept(self) -> int:
        """Units that it has and may go on using."""
        return len(self.units) - len(self.asked)


class Treasury:
    """`capacity` of a resource is what the worker that joined last was told of it."""

    def __init__(self) -> None:
        self._members: dict[str, dict[str, _Member]] = {}
        self._capacity: dict[str, int] = {}

    def join(self, worker_id: str, queue: str, uses: Mapping[str, int], *, most: int, now: float) -> list[Order]:
        """A worker became ready. `uses`: resources of its handlers, and amounts; `most`: calls at a time."""
        orders: list[Order] = []
        for resource, amount in uses.items():
            self._capacity[resource] = amount
            self._members.setdefault(resource, {})[worker_id] = _Member(queue, most)
            orders += self._settle(resource, now)
        return orders

    def retire(self, worker_id: str) -> None:
        """It is to leave: it gets nothing more. What it has comes back with it."""
        for members in self._members.values():
            if worker_id in members:
                members[worker_id].retired = True

    def leave(self, worker_id: str, *, now: float) -> list[Order]:
        """It is reaped and its process group dead."""
        orders: list[Order] = []
        for resource, members in self._members.items():
            if members.pop(worker_id, None) is not None:
                orders += self._settle(resource, now)
        return orders

    def returned(self, worker_id: str, resource: str, unit: int, *, now: float) -> list[Order]:
        member = self._members.get(resource, {}).get(worker_id)
        if member is None or unit not in member.units:
            return []
        del member.units[unit]
        member.asked.discard(unit)
        return self._settle(resource, now)

    def sampled(self, due: Mapping[str, int], *, now: float) -> list[Order]:
        """`due`: tasks that wait, by queue. A queue that has none of a unit gets its turn."""
        orders: list[Order] = []
        for resource, members in self._members.items():
            active = [member for member in members.values() if not member.retired]
            served = {member.queue for member in active if member.kept}
            hungry = {member.queue for member in active if due.get(member.queue, 0) > 0} - served
            if hungry and not self._is_moving(resource):
                orders += self._ask_back(resource, now, held_for=SLICE)
        return orders

    def held(self) -> dict[str, dict[str, int]]:
        """Capacity and units held, by resource."""
        return {
            resource: {"capacity": self._capacity[resource], "held": sum(len(m.units) for m in members.values())}
            for resource, members in self._members.items()
        }

    def _settle(self, resource: str, now: float) -> list[Order]:
        """Hand out what is free, poorest first; then let the richest give to one that has two fewer."""
        orders: list[Order] = []
        while (order := self._grant(resource, now)) is not None:
            orders.append(order)
        active = [m.kept for m in self._members[resource].values() if not m.retired]
        if active and max(active) - min(active) >= 2 and not self._is_moving(resource):
            orders += self._ask_back(resource, now, held_for=0.0)
        return orders

    def _grant(self, resource: str, now: float) -> Order | None:
        members = self._members[resource]
        taken = {unit for member in members.values() for unit in member.units}
        hungry = [
            (m.kept, m.served_at, worker_id) for worker_id, m in members.items() if not m.retired and m.kept < m.most
        ]
        if len(taken) >= self._capacity[resource] or not hungry:
            return None
        # Of the equally poor the one that was served longest ago, then the one that joined first.
        *_, worker_id = min(hungry, key=lambda one: one[:2])
        unit = next(number for number in range(len(taken) + 1) if number not in taken)
        members[worker_id].units[unit] = members[worker_id].served_at = now
        return Order(worker_id, resource, unit, grant=True)

    def _ask_back(self, resource: str, now: float, *, held_for: float) -> list[Order]:
        """One unit of the richest, if somebody has kept one for that long."""
        ripe = [
            (member.kept, worker_id, unit)
            for worker_id, member in self._members[resource].items()
            for unit, since in member.units.items()
            if unit not in member.asked and now - since >= held_for
        ]
        if not ripe:
            return []
        _, worker_id, unit = max(ripe)
        self._members[resource][worker_id].asked.add(unit)
        return [Order(worker_id, resource, unit, grant=False)]

    def _is_moving(self, resource: str) -> bool:
        """One at a time, so that nothing is asked for twice for the same reason."""
        return any(member.asked for member in self._members[resource].values() if not member.retired)
