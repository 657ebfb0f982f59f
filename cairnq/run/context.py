"""What a handler is given: its task, and the writes it may make for it. Every write names (task, worker, attempt)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar, Unpack, overload

from cairnq.db.replies import within
from cairnq.db.session import PgSession
from cairnq.pure import envelope as envelopes
from cairnq.pure.clock import Clock
from cairnq.pure.errors import LostLease
from cairnq.pure.keywords import SubmitKeywords
from cairnq.pure.models import Settlement, Standing, Task, TaskDef
from cairnq.run import outcomes
from cairnq.run.attempt import Attempt
from cairnq.run.evidence import status_written
from cairnq.run.options import EngineOptions
from cairnq.run.outage import Outage
from cairnq.store.base import TaskStore

P = TypeVar("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Desk:
    """What the contexts of one worker share."""

    store: TaskStore
    worker_id: str
    options: EngineOptions
    clock: Clock
    outage: Outage
    settle: Callable[[Attempt, Settlement], None]
    lose: Callable[[Attempt, str], None]
    on_settled: Callable[[], None]
    """To be called when a handler's own transaction has settled an attempt."""
    submit: Callable[..., Awaitable[Task]]
    wait: Callable[..., Awaitable[Task]]


class _SettledMeanwhile(Exception):
    """Rolls back, and nobody sees it."""


class TaskContext:
    """One attempt, as its handler sees it. Writes raise `LostLease` once the lease is lost or the call is over."""

    def __init__(self, attempt: Attempt, desk: Desk) -> None:
        self._attempt = attempt
        self._desk = desk
        self._sealed = False

    @property
    def task_id(self) -> str:
        return self._attempt.task.id

    @property
    def name(self) -> str:
        return self._attempt.task.name

    @property
    def queue(self) -> str:
        return self._attempt.task.queue

    @property
    def attempt(self) -> int:
        """Claims so far. It may repeat after a release, so it is no idempotency key."""
        return self._attempt.task.attempt

    @property
    def worker_id(self) -> str:
        return self._desk.worker_id

    @property
    def metadata(self) -> Any:
        return self._attempt.task.metadata

    @property
    def root_id(self) -> str:
        return self._attempt.task.root_id or self._attempt.task.id

    @property
    def correlation_id(self) -> str | None:
        return self._attempt.task.correlation_id

    @property
    def payload(self) -> Any:
        return self._attempt.task.payload

    @property
    def settled(self) -> bool:
        """An outcome was chosen for this attempt; another one has no effect."""
        return self._attempt.settlement is not None

    @property
    def lost_lease(self) -> bool:
        """Nothing can be written any more: another worker may run this task, or will."""
        return self._attempt.lost or (not self.settled and not self._attempt.is_trusted(self._desk.clock()))

    @property
    def lease_lost(self) -> asyncio.Event:
        """Set when `lost_lease` becomes true."""
        return self._attempt.lease_lost

    async def canceled(self) -> bool:
        """Whether somebody asked for this task to be canceled. Learnt with the beats, so within a third of a lease."""
        return self._attempt.cancel_requested()

    async def progress(self, value: float | None, message: str | None = None) -> Task:
        """Store how far this is (0.0 to 1.0) and a message; None leaves either as it is.

        While the database is away it waits, as long as the lease is trusted.
        """
        task_id, worker_id, attempt = self._name()
        store = self._desk.store
        return await self._while_trusted(lambda: store.progress(task_id, worker_id, value, message, attempt=attempt))

    async def heartbeat(self) -> Task:
        """Renew the lease now. The worker does so by itself; a handler need not."""
        task_id, worker_id, attempt = self._name()
        desk = self._desk

        async def beat() -> Task:
            sent = desk.clock()
            task = await desk.store.heartbeat(task_id, worker_id, desk.options.lease_ms, attempt=attempt)
            if self._attempt.slot is not None:
                self._attempt.table.extend(self._attempt.slot, sent=sent)
            return task

        return await self._while_trusted(beat)

    async def succeed(self, result: Any = None) -> Task | None:
        """Settle as succeeded, now; the handler may go on. Returns the task, None where it was settled before.

        Raises `SerializationError` for a result that is not JSON; then nothing is settled. A handler with
        `forget=True` gets None too: the row is gone.
        """
        if not self._may_settle():
            return None
        call = self._attempt.call
        forget = call is not None and call.handler.forget
        return await self._settle(Settlement.complete(self.task_id, self.attempt, result, forget=forget))

    async def fail(self, error: Any = "task failed", *, retryable: bool = True) -> Task | None:
        """Settle as failed, now: queued again after the backoff while attempts are left, if `retryable`.

        `error` is a message, an exception, or a dict with fields of the envelope. Returns as `succeed` does.
        """
        if not self._may_settle():
            return None
        reason = envelopes.of_failure(error, retryable=retryable)
        as_settlement = outcomes.failed if isinstance(error, BaseException) else outcomes.failed_as_told
        return await self._settle(as_settlement(self._attempt, reason, self._desk.options))

    async def succeed_in(self, write: Callable[[PgSession], Awaitable[Any]]) -> Task | None:
        """Run `write(session)` and settle in one transaction; what it returns is the result.

        A lost lease rolls both back and raises `LostLease`; what `write` raises rolls back too, and the attempt stays
        open. Returns the task, None where it was settled before, or by somebody else while `write` ran.
        """
        if not self._may_settle():
            return None
        attempt, desk = self._attempt, self._desk
        chosen: Settlement | None = None

        async def fenced(session: PgSession) -> Any:
            nonlocal chosen
            value = await write(session)
            if not self._may_settle():
                raise _SettledMeanwhile
            chosen = Settlement.complete(self.task_id, self.attempt, value)
            attempt.choose(chosen, desk.clock())
            return value

        try:
            task, _ = await desk.store.complete_in(self.task_id, desk.worker_id, fenced, attempt=self.attempt)
        except _SettledMeanwhile:
            return None
        except (Exception, asyncio.CancelledError) as error:
            if chosen is None or not await self._was_committed(chosen, error):
                raise
            return await self._read_back()
        attempt.close(task.status)
        desk.on_settled()
        return task

    @overload
    async def submit(self, name: TaskDef[P, Any], payload: P, **keywords: Unpack[SubmitKeywords]) -> Task: ...
    @overload
    async def submit(self, name: TaskDef[None, Any], **keywords: Unpack[SubmitKeywords]) -> Task: ...
    @overload
    async def submit(self, name: str, payload: Any = None, **keywords: Unpack[SubmitKeywords]) -> Task: ...
    async def submit(self, name: Any, payload: Any = None, **keywords: Any) -> Task:
        """Submit a task that descends from this one: parent, root and correlation are filled in.

        Takes the keywords of `CairnQ.submit`, and waits as it does where a queue is at its depth limit.
        """
        self._check_writable()
        task = self._attempt.task
        lineage = {"parent_id": task.id, "root_id": self.root_id, "correlation_id": task.correlation_id}
        return await self._desk.submit(name, payload, **{**lineage, **keywords})

    async def wait(self, task_id: str, *, timeout_ms: int = 30_000, poll_ms: int = 100, max_poll_ms: int = 500) -> Task:
        """Wait for another task's end, as `CairnQ.wait` does. The own call keeps its slot meanwhile."""
        return await self._desk.wait(task_id, timeout_ms=timeout_ms, poll_ms=poll_ms, max_poll_ms=max_poll_ms)

    def when_lost(self, callback: Callable[[], None]) -> None:
        """`callback` runs on the loop when the lease is lost, at once if it is."""
        self._attempt.when_lost(callback)

    def seal(self) -> None:
        """The call is over: whatever it left behind writes nothing through this context."""
        self._sealed = True

    def _name(self) -> tuple[str, str, int]:
        return self.task_id, self._desk.worker_id, self.attempt

    def _may_settle(self) -> bool:
        """False where an outcome was chosen before. Raises `LostLease` where none can be chosen any more."""
        if self.settled and not self._attempt.lost:
            return False
        self._check_writable()
        return True

    def _check_writable(self) -> None:
        attempt = self._attempt
        if not attempt.lost and not self.settled and not attempt.is_trusted(self._desk.clock()):
            self._desk.lose(attempt, "its trust window ended")
        if attempt.lost or self._sealed:
            raise LostLease(self.task_id)

    async def _settle(self, settlement: Settlement) -> Task | None:
        written = self._attempt.outcome_written()
        self._desk.settle(self._attempt, settlement)
        if await asyncio.shield(written) is None:
            raise LostLease(self.task_id)
        return await self._read_back()

    async def _read_back(self) -> Task | None:
        return await self._desk.outage.patiently(lambda: self._desk.store.get(self.task_id), "get")

    async def _while_trusted(self, write: Callable[[], Awaitable[T]]) -> T:
        def is_writable() -> bool:
            self._check_writable()
            return True

        def bounded() -> Awaitable[T]:
            return within(write(), self._desk.options.lease_s / 3, "a write of a handler")

        self._check_writable()
        try:
            return await self._desk.outage.patiently(bounded, "context", going_on=is_writable)
        except LostLease:
            if not self._attempt.lost and not self._sealed and not self.settled:
                self._desk.lose(self._attempt, "a write of its handler matched no row")
            raise

    async def _was_committed(self, chosen: Settlement, error: BaseException) -> bool:
        """After a `succeed_in` that ended in an error with its settlement under way: did the commit get through?

        Where it did not, the attempt is open again, or raises `LostLease` if it is this worker's no more. Where the
        call has returned meanwhile, nobody is left to choose: it ends as its call did.
        """
        attempt, desk = self._attempt, self._desk
        try:
            if isinstance(error, LostLease):
                desk.lose(attempt, "its settlement matched no row")
            elif isinstance(error, Exception) and desk.outage.is_of_database(error):
                return await self._is_proven(chosen, error)
        finally:
            attempt.reopen()
            if attempt.otherwise is not None:
                desk.settle(attempt, attempt.otherwise)
        return False

    async def _is_proven(self, chosen: Settlement, error: Exception) -> bool:
        attempt, desk = self._attempt, self._desk

        def question() -> Awaitable[list[Standing]]:
            asked = desk.store.standing_many(desk.worker_id, [attempt.held])
            return within(asked, desk.options.lease_s / 3, "reading back a commit")

        [standing] = await desk.outage.patiently(question, "standing")
        if standing is Standing.HELD:
            return False
        status = status_written(chosen, standing, may_be_own=attempt.is_trusted(desk.clock()))
        if status is None:
            desk.lose(attempt, "nothing proves that its commit, which had no reply, was its own")
            raise LostLease(self.task_id) from error
        attempt.close(status)
        desk.on_settled()
        return True
