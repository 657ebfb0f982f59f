"""The keeper's beats: one at a time, only when ordered, and never on an order that is too old to vouch for anybody."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cairnq.pure import models as store_models
from cairnq.pure.clock import Clock, boottime
from cairnq.run.beats import Beater, BeatReport, LeaseKey, Tables
from cairnq.run.leases import LeaseTable
from cairnq.store.base import TaskStore
from cairnq.store.sqlite import SqliteStore
from cairnq_supervisor.pure.keeper_messages import Beat, Beaten
from cairnq_supervisor.roles.clockwatch import ClockWatch
from cairnq_supervisor.roles.connection import Connection
from cairnq_supervisor.roles.link import Link

_SOONER = 0.8
"""Part of the time in which a locked row must be tried again that passes before it is."""

_RETRY_PART = 1 / 10
"""Part of the shortest lease after which a failed beat is tried again, while its order is fresh."""


@dataclass(frozen=True, slots=True)
class Lent:
    """A worker's lease table in the keeper's hands, and its lease in seconds."""

    table: LeaseTable
    lease: float


class Beating:
    """`order` may come at any time; the newest unserved order counts."""

    def __init__(
        self,
        connection: Connection,
        link: Link,
        tables: Mapping[str, Lent],
        clock: Clock = boottime,
    ) -> None:
        self._connection = connection
        self._link = link
        self._tables = tables
        self._clock = clock
        self._order: Beat | None = None
        self._served: Beat | None = None
        self._fresh_until = 0.0
        self.clockwatch: ClockWatch | None = None
        """Where leases end by this host's wall clock: looked at before each beat."""

        self._news = asyncio.Event()
        self._stopping = False

    def order(self, order: Beat) -> None:
        self._order = order
        self._news.set()

    def repeat(self) -> None:
        """Beat at once what the latest order names, unless it is too old to vouch for anybody."""
        if self._served is not None and self._order is None and self._clock() < self._fresh_until:
            self.order(self._served)

    def stop(self) -> None:
        """Let `run` return once the statement in hand has ended."""
        self._stopping = True
        self._news.set()

    async def run(self) -> None:
        """Serve orders until `stop`."""
        order, again = None, _Again()
        while not self._stopping:
            if not await self._next(again.wait_s):
                if order is not None:
                    again = await self._serve(order, again.only)
                continue
            order, self._order = self._order, None
            if order is not None:
                again = await self._serve(order, None)

    async def _next(self, wait_s: float | None) -> bool:
        """True once there is news, False when it is time to try again."""
        waiting = asyncio.ensure_future(self._news.wait())
        done, _ = await asyncio.wait({waiting}, timeout=wait_s)
        waiting.cancel()
        self._news.clear()
        return bool(done)

    async def _serve(self, order: Beat, only: Collection[LeaseKey] | None) -> _Again:
        """One beat. Says what to try again, and when, before the next order."""
        lent = [(worker_id, self._tables[worker_id]) for worker_id in order.worker_ids if worker_id in self._tables]
        if not lent:
            return _Again()
        shortest = min(one.lease for _, one in lent)
        began = self._clock()
        if began - order.ordered_at > shortest / 2:
            self._link.emit("keeper.order-stale", age_s=round(began - order.ordered_at, 3))
            self._link.emit("lease.beat-failed", cause="stale order", workers=len(lent))
            return _Again()
        tables = [(worker_id, one.table) for worker_id, one in lent]
        self._served, self._fresh_until = order, order.ordered_at + shortest / 2
        if self.clockwatch is not None:
            self.clockwatch.look()
            await self._revive(self.clockwatch, tables, shortest / 2)
        report = await self._connection.ask(
            "beat", lambda store: Beater(store, self._clock).beat(tables, only=only), patience=shortest / 2
        )
        if report is None:
            self._link.emit("lease.beat-failed", cause="database", workers=len(lent))
            return _Again(shortest * _RETRY_PART, only)
        self._report(order, report, self._clock() - began)
        if report.unsure and report.retry_within_s is not None:
            return _Again(report.retry_within_s * _SOONER, report.unsure)
        return _Again()

    async def _revive(self, watch: ClockWatch, tables: Tables, patience: float) -> None:
        """After a step of the wall clock: what is held, and trusted by the steady clock, is renewed in any case."""
        if not watch.take_renewal():
            return
        now = self._clock()
        beats = [
            store_models.Beat(entry.task_id, worker_id, entry.attempt, round(entry.lease_s * 1000))
            for worker_id, table in tables
            for entry in table.entries()
            if entry.trusted_until > now
        ]
        if not beats:
            return
        if await self._connection.ask("renewal", lambda store: _renew(store, beats), patience=patience) is None:
            watch.owe_renewal()

    def _report(self, order: Beat, report: BeatReport, took: float) -> None:
        for held in report.lost:
            self._link.emit("lease.lost", task_id=held.task_id, attempt=held.attempt)
        self._link.send(
            Beaten(
                ordered_at=order.ordered_at,
                renewed=report.renewed,
                unsure=len(report.unsure),
                lost=len(report.lost),
                latency_ms=round(took * 1000),
                changed=tuple(sorted(report.changed)),
            )
        )


async def _renew(store: TaskStore, beats: Sequence[store_models.Beat]) -> bool:
    assert isinstance(store, SqliteStore)
    await store.renew_lapsed(beats)
    return True


@dataclass(frozen=True, slots=True)
class _Again:
    """What to beat again, and after how many seconds. None: nothing before the next order."""

    wait_s: float | None = None
    only: Collection[LeaseKey] | None = None
