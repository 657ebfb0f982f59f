"""One beat: renew every lease of the given tables in one statement and write what became of each into its table.

Used by the standalone worker's lease thread and by the supervisor's keeper alike. It keeps no timer and no
connection of its own, and emits nothing: the caller decides when to beat and reads the report.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cairnq.db.replies import within
from cairnq.pure.clock import Clock, boottime
from cairnq.pure.models import Beat, Held, Standing
from cairnq.run.leases import Entry, LeaseState, LeaseTable
from cairnq.store.base import TaskStore

Tables = Sequence[tuple[str, LeaseTable]]
"""Pairs of a worker id and the table of what it holds."""


class LeaseKey(NamedTuple):
    """Names one held attempt of one worker for as long as its slot does not move on."""

    worker_id: str
    slot: int
    generation: int


@dataclass(frozen=True, slots=True)
class BeatReport:
    """What one beat found. A worker named in `changed` has a new verdict or a new cancel request in its table, or had
    waited for a beat before it claims again.
    """

    renewed: int = 0
    lost: tuple[Held, ...] = ()
    unsure: frozenset[LeaseKey] = frozenset()
    """Somebody holds these rows' locks, and their trust stands still: beat them again within `retry_within_s`."""
    retry_within_s: float | None = None
    changed: frozenset[str] = frozenset()


class Beater:
    """Calls of `beat` must not overlap: verdicts go into the tables in the order in which they were read."""

    def __init__(self, store: TaskStore, clock: Clock = boottime) -> None:
        self._store = store
        self._clock = clock

    async def beat(
        self, tables: Tables, *, only: Collection[LeaseKey] | None = None, timeout_s: float | None = None
    ) -> BeatReport:
        """Renew all leases (those in `only`, where given) that are held, ended but unsettled ones included.

        `timeout_s` bounds each of the two statements, by default to a sixth of the shortest lease. Raises what the
        store raises, and `DatabaseUnavailable` when the time is up; then no lease was renewed, whatever the server did.
        """
        leases, sent = _collect(tables, only), self._clock()
        if not leases:
            return BeatReport(changed=_show_beaten(tables, sent))
        timeout_s = timeout_s or min(lease.entry.lease_s for lease in leases) / 6
        beats = [lease.beat() for lease in leases]
        replies = await within(self._store.beat_many(beats), timeout_s, "a beat")
        tally = _Tally()
        absent = [lease for lease, reply in zip(leases, replies, strict=True) if not tally.renew(lease, reply, sent)]
        if absent:
            await self._read_back(absent, timeout_s, tally)
        tally.changed |= _show_beaten(tables, sent)
        return tally.report()

    async def _read_back(self, absent: list[_Lease], timeout_s: float, tally: _Tally) -> None:
        question = self._store.standing_of(
            (lease.entry.task_id, lease.worker_id, lease.entry.attempt) for lease in absent
        )
        for lease, standing in zip(absent, await within(question, timeout_s, "a beat's read-back"), strict=True):
            tally.judge(lease, standing)


@dataclass(frozen=True, slots=True)
class _Lease:
    worker_id: str
    table: LeaseTable
    entry: Entry

    def beat(self) -> Beat:
        return Beat(self.entry.task_id, self.worker_id, self.entry.attempt, round(self.entry.lease_s * 1000))

    def held(self) -> Held:
        return Held(self.entry.task_id, self.entry.attempt)

    def key(self) -> LeaseKey:
        return LeaseKey(self.worker_id, self.entry.slot, self.entry.generation)

    def is_settling(self) -> bool:
        """The holder let go of it, or is writing its outcome: an absent row is its own doing."""
        now = self.table.entry(self.entry.slot)
        return now is None or now.generation != self.entry.generation or now.state is LeaseState.ENDED


@dataclass(slots=True)
class _Tally:
    renewed: int = 0
    lost: list[Held] = field(default_factory=list)
    unsure: set[LeaseKey] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    shortest_s: float = float("inf")

    def renew(self, lease: _Lease, reply: bool | None, sent: float) -> bool:
        if reply is None:
            return False
        slot = lease.entry.slot
        if reply and not lease.table.cancel_requested(slot):
            self.changed.add(lease.worker_id)
        lease.table.renew(slot, lease.entry.generation, sent=sent, cancel_requested=reply)
        self.renewed += 1
        return True

    def judge(self, lease: _Lease, standing: Standing) -> None:
        match standing:
            case Standing.HELD:
                self.unsure.add(lease.key())
                self.shortest_s = min(self.shortest_s, lease.entry.lease_s)
            case Standing.EXPIRED:
                self._lose(lease)
            case _ if not lease.is_settling():
                self._lose(lease)

    def _lose(self, lease: _Lease) -> None:
        lease.table.lose(lease.entry.slot, lease.entry.generation)
        self.lost.append(lease.held())
        self.changed.add(lease.worker_id)

    def report(self) -> BeatReport:
        return BeatReport(
            renewed=self.renewed,
            lost=tuple(self.lost),
            unsure=frozenset(self.unsure),
            retry_within_s=self.shortest_s / 10 if self.unsure else None,
            changed=frozenset(self.changed),
        )


def _show_beaten(tables: Tables, sent: float) -> frozenset[str]:
    """The workers that claimed nothing more, for nobody had beaten."""
    missed = frozenset(worker_id for worker_id, table in tables if not table.is_kept)
    for _, table in tables:
        table.beaten_at = sent
    return missed


def _collect(tables: Tables, only: Collection[LeaseKey] | None) -> list[_Lease]:
    leases = [_Lease(worker_id, table, entry) for worker_id, table in tables for entry in table.entries()]
    return leases if only is None else [lease for lease in leases if lease.key() in only]
