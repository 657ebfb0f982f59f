"""The context of a plain handler: the same names, blocking. A bridge to the loop, with no rule of its own."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future
from concurrent.futures import wait as wait_for_any
from typing import Any, TypeVar, Unpack, overload

from cairnq.db.session import PgSession
from cairnq.pure.errors import LostLease
from cairnq.pure.keywords import SubmitKeywords
from cairnq.pure.models import Task, TaskDef
from cairnq.run.context import TaskContext

P = TypeVar("P")
T = TypeVar("T")


class BlockingContext:
    """Used on the handler's thread; every write runs on the worker's loop, where the attempt's record lives."""

    def __init__(self, context: TaskContext, loop: asyncio.AbstractEventLoop) -> None:
        self._context = context
        self._loop = loop
        self._under_way: set[asyncio.Task[Any]] = set()
        self.lease_lost = threading.Event()
        """Set when `lost_lease` becomes true."""
        context.when_lost(self._lose)

    @property
    def task_id(self) -> str:
        return self._context.task_id

    @property
    def name(self) -> str:
        return self._context.name

    @property
    def queue(self) -> str:
        return self._context.queue

    @property
    def attempt(self) -> int:
        return self._context.attempt

    @property
    def worker_id(self) -> str:
        return self._context.worker_id

    @property
    def metadata(self) -> Any:
        return self._context.metadata

    @property
    def root_id(self) -> str:
        return self._context.root_id

    @property
    def correlation_id(self) -> str | None:
        return self._context.correlation_id

    @property
    def payload(self) -> Any:
        return self._context.payload

    @property
    def settled(self) -> bool:
        return self._context.settled

    @property
    def lost_lease(self) -> bool:
        return self._context.lost_lease

    def canceled(self) -> bool:
        return self._run(self._context.canceled())

    def progress(self, value: float | None, message: str | None = None) -> Task:
        return self._run(self._context.progress(value, message))

    def heartbeat(self) -> Task:
        return self._run(self._context.heartbeat())

    def succeed(self, result: Any = None) -> Task | None:
        return self._run(self._context.succeed(result))

    def fail(self, error: Any = "task failed", *, retryable: bool = True) -> Task | None:
        return self._run(self._context.fail(error, retryable=retryable))

    @overload
    def submit(self, name: TaskDef[P, Any], payload: P, **keywords: Unpack[SubmitKeywords]) -> Task: ...
    @overload
    def submit(self, name: TaskDef[None, Any], **keywords: Unpack[SubmitKeywords]) -> Task: ...
    @overload
    def submit(self, name: str, payload: Any = None, **keywords: Unpack[SubmitKeywords]) -> Task: ...
    def submit(self, name: Any, payload: Any = None, **keywords: Any) -> Task:
        return self._run(self._context.submit(name, payload, **keywords))

    def wait(self, task_id: str, *, timeout_ms: int = 30_000, poll_ms: int = 100, max_poll_ms: int = 500) -> Task:
        return self._run(self._context.wait(task_id, timeout_ms=timeout_ms, poll_ms=poll_ms, max_poll_ms=max_poll_ms))

    def succeed_in(self, write: Callable[[Any], Any]) -> Task | None:
        """`write(session)` runs on this thread, with a session that blocks; a coroutine function runs on the loop."""
        if inspect.iscoroutinefunction(write):
            return self._run(self._context.succeed_in(write))
        opened: Future[PgSession] = Future()
        written: Future[Any] = Future()

        async def relay(session: PgSession) -> Any:
            opened.set_result(session)
            return await asyncio.wrap_future(written)

        settled = self._start(self._context.succeed_in(relay))
        first: list[Future[Any]] = [opened, settled]
        wait_for_any(first, return_when=FIRST_COMPLETED)
        if opened.done():
            try:
                written.set_result(write(BlockingSession(opened.result(), self._loop)))
            except BaseException as error:  # noqa: BLE001 - carried over to the transaction, which rolls back and raises it
                written.set_exception(error)
        return self._result(settled)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._result(self._start(work))

    def _start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if self._loop.is_closed():
            work.close()
            raise LostLease(self.task_id)
        return asyncio.run_coroutine_threadsafe(self._cross(work), self._loop)

    def _result(self, future: Future[T]) -> T:
        try:
            return future.result()
        except CancelledError as error:
            raise LostLease(self.task_id) from error

    async def _cross(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.current_task()
        assert task is not None
        self._under_way.add(task)
        try:
            return await work
        finally:
            self._under_way.discard(task)

    def _lose(self) -> None:
        """On the loop: what this thread still waits for must not write any more."""
        self.lease_lost.set()
        for task in list(self._under_way):
            task.cancel()


class BlockingSession:
    """A `PgSession` for `succeed_in` on a thread."""

    def __init__(self, session: PgSession, loop: asyncio.AbstractEventLoop) -> None:
        self._session = session
        self._loop = loop

    def query(self, text: str, values: Sequence[Any] = ()) -> list[Any]:
        return asyncio.run_coroutine_threadsafe(self._session.query(text, values), self._loop).result()

    def execute(self, sql: str) -> None:
        asyncio.run_coroutine_threadsafe(self._session.execute(sql), self._loop).result()
