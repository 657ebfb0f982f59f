"""The keeper's duties to dead workers: settle what the lease table says, then sweep for what it does not say.

A claim that was on the wire when its worker died may still execute on the server, and a row that somebody had locked is
not settled at the first try; the sweeps find both.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, MutableMapping, Sequence
from typing import TypeVar

from cairnq.pure import envelope
from cairnq.pure.backoff import delay_ms
from cairnq.pure.clock import Clock, boottime
from cairnq.pure.models import Outcome, Settlement, TaskStatus
from cairnq.run.leases import Entry
from cairnq.store.base import TaskStore
from cairnq_supervisor.pure.evidence import culprit, has_started
from cairnq_supervisor.pure.keeper_messages import DutyDone, Settle, Settled
from cairnq_supervisor.roles.beating import Lent
from cairnq_supervisor.roles.connection import Connection
from cairnq_supervisor.roles.link import Link

_FIRST_SWEEPS = (0.2, 1.0)
"""Seconds after the death. Later ones follow every third of a lease."""

_RETRY = (0.05, 1.0)
"""Seconds before a failed statement is tried again: the first pause, doubling up to the second."""

_PATIENCE = 5.0
"""Seconds that a statement may take."""

_SPENT = (Outcome.CRASH, Outcome.FAIL)
_CRASHED = (*_SPENT, Outcome.SUSPECT)
_UNSPENT = (Outcome.RELEASE, Outcome.INTERRUPT, Outcome.SUSPECT)

T = TypeVar("T")


class Duties:
    """One task for each dead worker, until nothing of it can turn up any more."""

    def __init__(
        self,
        connection: Connection,
        link: Link,
        tables: MutableMapping[str, Lent],
        *,
        on_suspects: Callable[[], None],
        clock: Clock = boottime,
    ) -> None:
        """`on_suspects()` is called when tasks may have become suspects that are to run alone."""
        self._connection = connection
        self._link = link
        self._tables = tables
        self._on_suspects = on_suspects
        self._clock = clock
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, duty: Settle) -> None:
        task = asyncio.ensure_future(self._fulfil(duty))
        self._tasks[duty.worker_id] = task
        task.add_done_callback(lambda ended: self._ended(duty, ended))

    def owes(self, worker_id: str) -> bool:
        """Whether this worker is dead, and not everything of it settled."""
        return worker_id in self._tasks

    async def stop(self) -> None:
        """What is left goes to the next keeper, or to the leases' end."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _fulfil(self, duty: Settle) -> None:
        lent = self._tables.get(duty.worker_id)
        entries = lent.table.entries() if lent is not None else []
        guilty = culprit(entries, calls=lent.table.in_flight_calls) if lent is not None else None
        settlements = [settlement_of(entry, duty, guilty=guilty) for entry in entries]
        left, became = await self._settle(duty, settlements)
        crashed = [settlement.task_id for settlement in settlements if settlement.outcome in _CRASHED]
        names = await self._insist(lambda store: store.names(crashed)) if crashed else {}
        self._link.send(
            Settled(
                duty.worker_id,
                requeued=sum(became[outcome, "queued"] for outcome in _SPENT),
                failed=sum(count for (_, status), count in became.items() if status == "failed"),
                released=sum(became[outcome, "queued"] for outcome in _UNSPENT),
                suspects=became[Outcome.SUSPECT, "queued"],
                canceled=sum(count for (_, status), count in became.items() if status == "canceled"),
                crashed=names,
            )
        )
        if crashed:
            self._on_suspects()
        for after in sweep_times(duty.lease, duty.horizon):
            await asyncio.sleep(max(0.0, duty.since + after - self._clock()))
            left, became = await self._settle(duty, left)
            found = became.total() + await self._sweep(duty, left, known=lent is not None)
            if found:
                self._link.emit("worker.swept", worker_id=duty.worker_id, tasks=found)
        self._tables.pop(duty.worker_id, None)
        self._link.send(DutyDone(duty.worker_id))

    async def _settle(
        self, duty: Settle, settlements: Sequence[Settlement]
    ) -> tuple[list[Settlement], Counter[tuple[Outcome, TaskStatus]]]:
        """What matched no row (it was locked, or the dead worker's no more), and what became of the others.

        These are counted by the outcome that was written and the status that the task has now.
        """
        left: list[Settlement] = []
        became: Counter[tuple[Outcome, TaskStatus]] = Counter()
        if settlements:
            statuses = await self._insist(lambda store: store.settle_many(duty.worker_id, settlements))
            for item, status in zip(settlements, statuses, strict=True):
                if status is None:
                    left.append(item)
                else:
                    became[item.outcome, status] += 1
        return left, became

    async def _sweep(self, duty: Settle, left: Collection[Settlement], *, known: bool) -> int:
        """Rows that the table did not know never started, so they are given back. `known`: there was a table."""
        if not known and not duty.released:
            crash = envelope.worker_crashed(duty.reason, duty.details)
            backoff = {"backoff_ms": duty.retry_backoff_ms, "backoff_max_ms": duty.retry_backoff_max_ms}
            return len(await self._insist(lambda store: store.fail_worker(duty.worker_id, crash, **backoff)))
        held = await self._insist(lambda store: store.held_by(duty.worker_id))
        tried = {(item.task_id, item.attempt) for item in left}
        stray = [item for item in held if (item.task_id, item.attempt) not in tried]
        if not stray:
            return 0
        statuses = await self._insist(lambda store: store.release_many(duty.worker_id, stray))
        return sum(status is not None for status in statuses)

    async def _insist(self, write: Callable[[TaskStore], Awaitable[T]]) -> T:
        """Until it succeeds. The writes are fenced by worker and attempt, so that repeating one is harmless."""
        pause, longest = _RETRY
        while (answer := await self._connection.ask("settle", write, patience=_PATIENCE)) is None:
            await asyncio.sleep(pause)
            pause = min(longest, pause * 2)
        return answer

    def _ended(self, duty: Settle, task: asyncio.Task[None]) -> None:
        del self._tasks[duty.worker_id]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._link.emit("keeper.fault", worker_id=duty.worker_id, error=error)


def settlement_of(entry: Entry, duty: Settle, *, guilty: Entry | None) -> Settlement:
    """Started: failed if it is the `guilty` one; given back where another is, or we ended the worker; else a suspect.

    Not started: given back. It counts as started where it has returned as well: its outcome died with the worker, but
    what it did is done.
    """
    if not has_started(entry):
        return Settlement.release(entry.task_id, entry.attempt, started=False)
    delay = delay_ms(entry.attempt, base_ms=duty.retry_backoff_ms, max_ms=duty.retry_backoff_max_ms)
    if entry.task_id in duty.overrun:
        late = envelope.handler_timeout(duty.max_run_ms)
        return Settlement.fail(entry.task_id, entry.attempt, late, retryable=True, delay_ms=delay)
    if duty.released:
        return Settlement.release(entry.task_id, entry.attempt, started=True, reason=envelope.interrupted(duty.reason))
    crash = envelope.worker_crashed(duty.reason, duty.details)
    if guilty is not None and guilty is not entry:  # it had returned, and nobody suspects it
        return Settlement.release(entry.task_id, entry.attempt, started=True, reason=crash)
    return Settlement.crash(entry.task_id, entry.attempt, crash, alone=guilty is not None, delay_ms=delay)


def sweep_times(lease: float, horizon: float) -> Sequence[float]:
    """Seconds after a death at which to sweep: two early ones, then every third of a lease, the last at the horizon."""
    times = [after for after in _FIRST_SWEEPS if after < horizon]
    step = lease / 3
    while step < horizon:
        times.append(step)
        step += lease / 3
    return sorted({*times, horizon})
