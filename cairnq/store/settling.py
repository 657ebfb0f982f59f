"""Writes of running tasks (outcomes, beats, progress, a dead worker's leftovers), each with the ownership check."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from cairnq.db.fault import Fault
from cairnq.db.session import PgSession, Row
from cairnq.db.sqlstate import classify
from cairnq.pure import arguments, envelope, jsonio
from cairnq.pure.envelope import Envelope
from cairnq.pure.errors import LostLease
from cairnq.pure.models import Beat, Held, Outcome, Settlement, Standing, Task, TaskRef
from cairnq.store import rows
from cairnq.store.runner import BoundSession, StatementRunner, callers
from cairnq.store.settlements import Statuses, align, each_task_once, kept, settlement_values

T = TypeVar("T")

_FORGET_ROUNDS = 3


class Settling(StatementRunner):
    # --- one task ---------------------------------------------------------------------------------

    async def succeed(self, task_id: str, worker_id: str, result: Any, *, attempt: int | None = None) -> Task:
        """The low-level write that ignores a cancel; a worker uses `complete`."""
        body = jsonio.encode(result, "the result")
        return await self._settle_one(worker_id, Settlement(task_id, attempt, Outcome.SUCCEED, body))

    async def complete(self, task_id: str, worker_id: str, result: Any, *, attempt: int | None = None) -> Task:
        """Ends `succeeded`, or `canceled` (the result dropped) where a cancel was asked."""
        return await self._settle_one(worker_id, Settlement.complete(task_id, attempt, result))

    async def complete_in(
        self,
        task_id: str,
        worker_id: str,
        write: Callable[[PgSession], Awaitable[T]],
        *,
        attempt: int | None = None,
    ) -> tuple[Task, T]:
        """The caller's `write(session)` and the settlement in one transaction; the value becomes the result.

        The settlement is the last statement, so that beats go on renewing the row while `write` runs.
        Raises `LostLease`, and rolls `write` back, if the lease is gone by then.
        """
        async with self._transaction() as bound:
            await bound.rows("callers_plans")
            value = await callers(write(bound.session))
            task = await _settle_in(bound, worker_id, Settlement.complete(task_id, attempt, value))
            return task, value

    async def fail(
        self,
        task_id: str,
        worker_id: str,
        error: Envelope,
        retryable: bool = True,
        delay_ms: int = 0,
        *,
        attempt: int | None = None,
    ) -> Task:
        """Queued again after `delay_ms` while attempts are left, else `failed`; a permanent failure has no delay."""
        delay_ms = arguments.integer(delay_ms, "delay_ms", least=0, most=arguments.MAX_DELAY_MS)
        settlement = Settlement.fail(task_id, attempt, error, retryable=retryable, delay_ms=delay_ms)
        return await self._settle_one(worker_id, settlement)

    async def heartbeat(
        self, task_id: str, worker_id: str, lease_ms: int = 30_000, *, attempt: int | None = None
    ) -> Task:
        lease_ms = arguments.lease(lease_ms)
        async with self._transaction() as bound:
            if not await _beat(bound.rows, [task_id], [worker_id], [attempt], [lease_ms], waiting=True):
                raise LostLease(task_id)
            return rows.task((await bound.rows("get", id=task_id))[0])

    async def progress(
        self,
        task_id: str,
        worker_id: str,
        progress: float | None = None,
        message: str | None = None,
        *,
        attempt: int | None = None,
    ) -> Task:
        """None leaves a field as it is. `progress` is from 0.0 to 1.0."""
        found = await self._rows(
            "progress",
            id=task_id,
            worker_id=worker_id,
            attempt=attempt,
            progress=arguments.progress(progress),
            message=None if message is None else arguments.storable(message, "message"),
        )
        if not found:
            raise LostLease(task_id)
        return rows.task(found[0])

    async def _settle_one(self, worker_id: str, settlement: Settlement) -> Task:
        async with self._transaction() as bound:
            return await _settle_in(bound, worker_id, settlement)

    # --- many tasks -------------------------------------------------------------------------------

    async def settle_many(self, worker_id: str, settlements: Sequence[Settlement]) -> Statuses:
        """The status that each row has now, None where no row matched; see `TaskStore.settle_many`."""
        answers: Statuses = [None] * len(settlements)
        for positions in each_task_once(settlements):
            some = [settlements[position] for position in positions]
            for position, status in zip(positions, await self._settle_together(worker_id, some), strict=True):
                answers[position] = status
        return answers

    async def _settle_together(self, worker_id: str, settlements: Sequence[Settlement]) -> Statuses:
        """Each task at most once. What was to be forgotten and must be kept after all is settled as a completion."""
        gone = await self._forget(worker_id, [item for item in settlements if item.outcome is Outcome.FORGET])
        rest = [kept(item) for item in settlements if item.task_id not in gone]
        settled = iter(await self._settle(worker_id, rest) if rest else [])
        return ["succeeded" if item.task_id in gone else next(settled) for item in settlements]

    async def _forget(self, worker_id: str, settlements: Sequence[Settlement]) -> set[str]:
        """The tasks that are removed. What a beat moved under the statement is asked for again, a few times.

        What stays even so is no beat's doing: a trigger or a row policy takes the delete for nothing.
        """
        gone: set[str] = set()
        for _ in range(_FORGET_ROUNDS):
            if not settlements:
                break
            found = await self._rows("settle_forget", **settlement_values(worker_id, settlements))
            gone |= {task_id for task_id, is_removed, *_ in found if is_removed}
            moved = {task_id for task_id, is_removed, *_ in found if not is_removed}
            settlements = [item for item in settlements if item.task_id in moved]
        return gone

    async def _settle(self, worker_id: str, settlements: Sequence[Settlement]) -> Statuses:
        """One statement; where the database refuses a body, halves, until the culprit stands alone."""
        try:
            found = await self._rows("settle", **settlement_values(worker_id, settlements))
        except Exception as error:
            if classify(error.__cause__ or error) is not Fault.DATA:
                raise
            half = len(settlements) // 2
            if half == 0:
                return await self._settle_culprit(worker_id, settlements[0], str(error))
            first = await self._settle(worker_id, settlements[:half])
            return first + await self._settle(worker_id, settlements[half:])
        return align(settlements, found)

    async def _settle_culprit(self, worker_id: str, refused: Settlement, reason: str) -> Statuses:
        error = envelope.unserializable_result(reason)
        named = [Settlement.fail(refused.task_id, refused.attempt, error, retryable=False)]
        return align(named, await self._rows("settle", **settlement_values(worker_id, named)))

    async def release_many(
        self, worker_id: str, held: Sequence[Held], *, started: bool = False, reason: str = "released"
    ) -> Statuses:
        """Give attempts back without spending them. `started`: those with max_attempts = 1 end `interrupted`."""
        cause = envelope.interrupted(reason) if started else None
        return await self.settle_many(
            worker_id,
            [Settlement.release(item.task_id, item.attempt, started=started, reason=cause) for item in held],
        )

    async def beat_many(self, beats: Sequence[Beat]) -> list[bool | None]:
        """Per lease: None where no row matched, else whether a cancel was asked."""
        if not beats:
            return []
        found = await _beat(
            self._rows,
            [beat.task_id for beat in beats],
            [beat.worker_id for beat in beats],
            [beat.attempt for beat in beats],
            [beat.lease_ms for beat in beats],
        )
        return [found.get((beat.task_id, beat.worker_id, beat.attempt)) for beat in beats]

    async def heartbeat_batch(self, task_ids: Sequence[str], worker_id: str, lease_ms: int = 30_000) -> dict[str, bool]:
        """Renew by id and worker alone; an id that is absent from the answer was lost.

        What is locked at this moment is waited for, after all others were renewed.
        """
        lease_ms = arguments.lease(lease_ms)
        renewed: dict[str, bool] = {}
        for waiting in (False, True):
            ids = [task_id for task_id in dict.fromkeys(task_ids) if task_id not in renewed]
            if ids:
                count = len(ids)
                beaten = await _beat(
                    self._rows, ids, [worker_id] * count, [None] * count, [lease_ms] * count, waiting=waiting
                )
                renewed |= {task_id: cancel for (task_id, _, _), cancel in beaten.items()}
        return renewed

    async def standing_many(self, worker_id: str, held: Sequence[Held]) -> list[Standing]:
        """Where each attempt stands, asked after a write of it matched no row or had no reply."""
        return await self.standing_of((item.task_id, worker_id, item.attempt) for item in held)

    async def standing_of(self, attempts: Iterable[tuple[str, str, int]]) -> list[Standing]:
        """The same for any number of workers: task, worker and attempt of each."""
        asked = list(attempts)
        ids, worker_ids, numbers = ([one[place] for one in asked] for place in range(3))
        found = await self._rows("standing", ids=ids, worker_ids=worker_ids, attempts=numbers)
        standings = {(row[0], row[1], row[2]): Standing(row[3]) for row in found}
        return [standings[one] for one in asked]

    async def fail_worker(
        self, worker_id: str, error: Envelope, *, backoff_ms: int = 1000, backoff_max_ms: int = 30_000
    ) -> list[TaskRef]:
        """Fail, retryably and with backoff, whatever a dead worker still holds."""
        found = await self._rows(
            "fail_worker",
            worker_id=worker_id,
            error=jsonio.encode(error, "the error"),
            backoff_ms=arguments.integer(backoff_ms, "backoff_ms", least=0, most=arguments.MAX_DELAY_MS),
            backoff_max_ms=arguments.integer(backoff_max_ms, "backoff_max_ms", least=0, most=arguments.MAX_DELAY_MS),
        )
        return [TaskRef(*row) for row in found]


async def _settle_in(bound: BoundSession, worker_id: str, settlement: Settlement) -> Task:
    """Waits for the row's lock: what another writer of this moment holds is not lost."""
    found = await bound.rows("settle", ["waiting"], **settlement_values(worker_id, [settlement]))
    if not found:
        raise LostLease(settlement.task_id)
    return rows.task((await bound.rows("get", id=settlement.task_id))[0])


async def _beat(
    run: Callable[..., Awaitable[list[Row]]],
    ids: list[str],
    worker_ids: list[str],
    attempts: Sequence[int | None],
    leases_ms: list[int],
    *,
    waiting: bool = False,
) -> dict[tuple[str, str, int], bool]:
    values = {"ids": ids, "worker_ids": worker_ids, "attempts": list(attempts), "leases_ms": leases_ms}
    found = await run("beat", ["waiting"] if waiting else [], **values)
    return {(row[0], row[1], row[2]): bool(row[3]) for row in found}
