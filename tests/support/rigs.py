"""An engine on its own: no lease thread, no notifications, and a clock that the test moves ahead."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from cairnq import DatabaseUnavailable, Registry
from cairnq.pure.clock import boottime
from cairnq.pure.ids import new_worker_id
from cairnq.run.beats import Beater, BeatReport
from cairnq.run.engine import Engine, EngineOptions
from cairnq.run.leases import LeaseTable
from tests.support.gates import Recorder


class AheadClock:
    """The host's clock, moved ahead by the test. `slowness`: seconds of the host that are one of this clock's."""

    def __init__(self, slowness: float = 1.0) -> None:
        self.ahead = 0.0
        self._slowness = slowness

    def __call__(self) -> float:
        return boottime() / self._slowness + self.ahead


class Rig:
    """Its leases are kept by nobody but the test."""

    def __init__(
        self,
        store: Any,
        registry: Registry,
        events: Recorder,
        *,
        slowness: float = 1.0,
        slots: int = 32,
        **options: Any,
    ) -> None:
        self.clock = AheadClock(slowness)
        self.table = LeaseTable.private(slots)
        self.worker_id = new_worker_id()
        self._beater = Beater(store, self.clock)
        self.engine = Engine(
            store,
            registry,
            ["default"],
            EngineOptions(**{"poll_interval_s": 0.05, "retry_backoff_ms": 0, **options}),
            table=self.table,
            worker_id=self.worker_id,
            emit=events,
            clock=self.clock,
        )

    def teach_that_calls_are_short(self) -> None:
        """As if it had run 10,000 of them a second for a while, with more to claim."""
        pace, now = self.engine._claimer._pace, self.clock()
        pace.idle(now - 0.1, 0.0)
        pace.claimed(now - 0.1, full=True)
        for _ in range(1000):
            pace.returned(0.0001)
        pace.claimed(now, full=True)
        assert pace.ahead() > 100

    async def beat(self) -> BeatReport:
        """One beat of everything held, and the engine told of it."""
        report = await self._beater.beat([(self.worker_id, self.table)])
        self.engine.leases_changed()
        return report


MakeRig = Callable[..., AbstractAsyncContextManager[Rig]]


def lose_next_reply(store: Any, operation: str) -> None:
    """The next call takes effect on the server, and its caller learns nothing but that the connection is gone."""
    original = getattr(store, operation)

    async def cut_off(*arguments: Any, **keywords: Any) -> Any:
        setattr(store, operation, original)
        await original(*arguments, **keywords)
        raise DatabaseUnavailable("the connection was reset before the reply came")

    setattr(store, operation, cut_off)


def lose_next_call(store: Any, operation: str) -> None:
    """The next call never reaches the server."""
    original = getattr(store, operation)

    async def refuse(*_arguments: Any, **_keywords: Any) -> Any:
        setattr(store, operation, original)
        raise DatabaseUnavailable("the connection was refused")

    setattr(store, operation, refuse)


async def move_to_another_worker(store: Any, task_id: str) -> None:
    """As if the lease had run out and `worker_OTHER` had claimed the task."""
    await _write(
        store, "update cairnq_tasks set worker_id = 'worker_OTHER', attempt = attempt + 1 where id = $1", task_id
    )


async def let_lapse(store: Any, task_id: str) -> None:
    """As if the database's clock had jumped past the end of the lease."""
    await _write(store, "update cairnq_tasks set lease_until_ms = 1 where id = $1", task_id)


async def _write(store: Any, sql: str, task_id: str) -> None:
    async with store._autocommit() as bound:
        await bound.session.rows(f"{sql} returning id", [task_id])
