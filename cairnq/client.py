"""The client: submits tasks, reads them, waits for them. Any number of processes may share one database."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, overload

from cairnq.db.session import PgExecutor
from cairnq.pure import arguments, records, urls
from cairnq.pure.errors import InvalidArgument, TaskCanceled, TaskFailed
from cairnq.pure.keywords import CallKeywords, SubmitKeywords
from cairnq.pure.models import Conflict, Task, TaskDef, WatchSignal
from cairnq.store.backpressure import DEFAULT_POLL_MS, DEFAULT_WAIT_MS, Backpressure, QueueDepthLimit
from cairnq.store.base import TaskStore
from cairnq.store.handle import StoreHandle
from cairnq.store.postgres import PostgresStore
from cairnq.store.retention import Retention, Sweeper
from cairnq.store.sqlite import DEFAULT_BUSY_TIMEOUT_MS, SqliteStore
from cairnq.store.wait import DoneWatch, Waiter, check_options
from cairnq.store.watch import Watch

P = TypeVar("P")
R = TypeVar("R")

DEFAULT_TIMEOUT_MS = 30_000


class CairnQ(StoreHandle):
    """A handle on one cairnq database. Use it as an async context manager, or call `connect()` and `close()`.

    `max_queue_depth`: how many tasks may be queued, for all queues or by queue; a submit at the limit waits up to
    `max_queue_wait_ms`, looking every `queue_poll_interval_ms`, then raises `QueueFull`.
    `retention`: deletes finished tasks of this age (ms, or a `Retention`) while the handle is open.
    """

    def __init__(
        self,
        store: TaskStore,
        *,
        max_queue_depth: QueueDepthLimit | None = None,
        max_queue_wait_ms: int = DEFAULT_WAIT_MS,
        queue_poll_interval_ms: int = DEFAULT_POLL_MS,
        retention: int | Retention | None = None,
    ) -> None:
        super().__init__(store)
        self._backpressure = Backpressure(
            store, max_queue_depth, max_wait_ms=max_queue_wait_ms, poll_interval_ms=queue_poll_interval_ms
        )
        self._retention = Retention.of(retention)
        self._sweeper: Sweeper | None = None
        self._done = DoneWatch(store)
        self._waiter = Waiter(store, self._done)
        self._watches: set[Watch] = set()

    @classmethod
    def at(cls, url: str, **options: Any) -> Self:
        """`url`: `postgresql://user@host/name`, or `sqlite:///cairnq.db` (four slashes before an absolute path).

        Options are those of `postgres()` or of `sqlite()`, whichever is named. Any other URL: `InvalidDsn`.
        """
        path = urls.client_file_of(url)
        return cls.postgres(url, **options) if path is None else cls.sqlite(path, **options)

    @classmethod
    def postgres(
        cls,
        source: str | PgExecutor,
        *,
        min_size: int = 1,
        max_size: int = 10,
        schema: str | None = None,
        listen_database: str | None = None,
        **options: Any,
    ) -> Self:
        """`source`: a database URL, or a `PgExecutor` over the application's own driver (which we never close).

        `min_size`, `max_size`: connections of the pool. `schema`: where the tables are, made if absent.
        `listen_database`: a direct URL for notifications; giving it says that `source` goes through a
        transaction pooler. Other options: see the class.
        """
        store = PostgresStore(
            source, min_size=min_size, max_size=max_size, schema=schema, listen_database=listen_database
        )
        return cls(store, **options)

    @classmethod
    def sqlite(
        cls, path: str | os.PathLike[str], *, busy_timeout_ms: int = DEFAULT_BUSY_TIMEOUT_MS, **options: Any
    ) -> Self:
        """`path`: a file on a local disk, made if absent, which any number of processes of this host may share.

        `busy_timeout_ms`: how long a write waits for other processes' writes before `DatabaseUnavailable`. Other
        options: see the class.
        """
        return cls(SqliteStore(path, busy_timeout_ms=busy_timeout_ms), **options)

    async def __aenter__(self) -> Self:
        try:
            await self.connect()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def connect(self) -> None:
        """Check the database (schema, migrations, protocol version) once. Optional: the first call does it too."""
        await self.store.connect()
        self._start_sweeping()

    async def close(self) -> None:
        sweeper, self._sweeper = self._sweeper, None
        if sweeper is not None:
            await sweeper.stop()
        for watch in list(self._watches):
            await watch.stop()
        await self._done.close()
        await self.store.close()

    # --- submit -----------------------------------------------------------------------------------

    @overload
    async def submit(
        self, name: TaskDef[P, Any], payload: P, *, session: Any = None, **keywords: Unpack[SubmitKeywords]
    ) -> Task: ...
    @overload
    async def submit(
        self, name: TaskDef[None, Any], *, session: Any = None, **keywords: Unpack[SubmitKeywords]
    ) -> Task: ...
    @overload
    async def submit(
        self, name: str, payload: Any = None, *, session: Any = None, **keywords: Unpack[SubmitKeywords]
    ) -> Task: ...
    async def submit(
        self,
        name: str | TaskDef[Any, Any],
        payload: Any = None,
        *,
        key: str | None = None,
        queue: str = "default",
        conflict: Conflict = "reuse",
        max_attempts: int = 3,
        priority: int = 0,
        metadata: Mapping[str, Any] | None = None,
        parent_id: str | None = None,
        root_id: str | None = None,
        correlation_id: str | None = None,
        delay_ms: int | None = None,
        run_at_delay_ms: int | None = None,
        session: Any = None,
    ) -> Task:
        """Insert one queued task and return it.

        `payload`: anything JSON holds, or a dataclass; `metadata`: a mapping of it. `key`: a business name under which
        one current task stands; `conflict` says what a submit does when one does (`reuse` it while it lives,
        `reuse-succeeded` also when it succeeded, `reject` with `AlreadyExists`, or `replace`: cancel it).
        `max_attempts`: claims before a failure is final. `priority`: higher runs first. `delay_ms` (or
        `run_at_delay_ms`): not before so many ms from now. `session`: a psycopg `AsyncConnection` or a `PgSession`
        whose transaction the insert shall be part of; then a full queue is `QueueFull` at once, for nothing should
        wait inside a transaction.
        """
        item = {
            "name": name,
            "payload": payload,
            "key": key,
            "queue": queue,
            "conflict": conflict,
            "max_attempts": max_attempts,
            "priority": priority,
            "metadata": metadata,
            "parent_id": parent_id,
            "root_id": root_id,
            "correlation_id": correlation_id,
            "run_at_delay_ms": arguments.delay(delay_ms, run_at_delay_ms),
        }
        await self.admit([item], may_wait=session is None)
        return await self.store.submit(**item, session=session)

    async def submit_many(self, items: Sequence[Mapping[str, Any]], *, session: Any = None) -> list[Task]:
        """Insert many tasks at once, all or none; each item holds the arguments of `submit`.

        On PostgreSQL at most 5,000 different keys, each of which is a lock; any number of items without one.
        """
        await self.admit(items, may_wait=session is None)
        return await self.store.submit_many(items, session=session)

    async def admit(self, items: Sequence[Mapping[str, Any]], *, may_wait: bool = True) -> None:
        """What a submit does before it inserts: see that the items are right, and hold back what is too much.

        Nobody waits to hear of a typo. Raises `QueueFull`, at once unless `may_wait`.
        """
        self._start_sweeping()
        if self._backpressure.is_off:
            return
        for queue in sorted({item.queue for item in arguments.submissions(items)}):
            await self._backpressure.admit(queue, may_wait=may_wait)

    def _start_sweeping(self) -> None:
        if self._retention is not None and self._sweeper is None:
            self._sweeper = Sweeper(self.store, self._retention)

    @overload
    async def call(self, name: TaskDef[P, R], payload: P, **keywords: Unpack[CallKeywords]) -> R: ...
    @overload
    async def call(self, name: TaskDef[None, R], **keywords: Unpack[CallKeywords]) -> R: ...
    @overload
    async def call(self, name: str, payload: Any = None, **keywords: Unpack[CallKeywords]) -> Any: ...
    async def call(
        self,
        name: str | TaskDef[Any, Any],
        payload: Any = None,
        *,
        wait_timeout_ms: int | None = None,
        timeout_ms: int | None = None,
        poll_ms: int = 100,
        max_poll_ms: int = 500,
        **submit: Any,
    ) -> Any:
        """Submit, wait, and return the result. Raises `TaskFailed`, `TaskCanceled`, or `TaskTimeout` (it runs on).

        `timeout_ms` and `wait_timeout_ms` are two spellings of one argument (default 30 s).
        """
        if wait_timeout_ms is not None and timeout_ms is not None:
            raise InvalidArgument("give timeout_ms or wait_timeout_ms, not both: they mean the same")
        if submit.get("session") is not None:
            raise InvalidArgument(
                "call() cannot wait for a task that no worker sees before your transaction commits: "
                "submit it with session=, commit, then wait for its id"
            )
        given = timeout_ms if wait_timeout_ms is None else wait_timeout_ms
        patience = {
            "timeout_ms": DEFAULT_TIMEOUT_MS if given is None else given,
            "poll_ms": poll_ms,
            "max_poll_ms": max_poll_ms,
        }
        check_options(**patience)
        task = await self.submit(name, payload, **submit)
        ended = await self.wait(task.id, **patience)
        if ended.failed:
            raise TaskFailed(ended.error)
        if ended.canceled:
            raise TaskCanceled(ended.id)
        return records.restore(name.result_type, ended.result) if isinstance(name, TaskDef) else ended.result

    # --- wait -------------------------------------------------------------------------------------

    async def wait(
        self, task_id: str, *, timeout_ms: int = DEFAULT_TIMEOUT_MS, poll_ms: int = 100, max_poll_ms: int = 500
    ) -> Task:
        """The task once it has ended, however it ended. Raises `TaskTimeout`; the task runs on."""
        return await self._waiter.wait(task_id, timeout_ms=timeout_ms, poll_ms=poll_ms, max_poll_ms=max_poll_ms)

    async def wait_by_key(
        self, key: str, *, timeout_ms: int = DEFAULT_TIMEOUT_MS, poll_ms: int = 100, max_poll_ms: int = 500
    ) -> Task:
        return await self._waiter.wait_by_key(key, timeout_ms=timeout_ms, poll_ms=poll_ms, max_poll_ms=max_poll_ms)

    async def watch(
        self,
        on_signal: Callable[[WatchSignal], None],
        queues: Sequence[str] | None = None,
        poll_ms: int = 2000,
    ) -> Callable[[], Awaitable[None]]:
        """Call `on_signal` whenever something may have changed: queued, done, and every `poll_ms` whatever happens.

        `queues`: only tasks queued there (a `done` names a task and no queue, and always comes). Returns the
        coroutine function that stops it.
        """
        watch = Watch(self.store, on_signal, queues, poll_ms)
        await watch.start()
        self._watches.add(watch)

        async def stop() -> None:
            self._watches.discard(watch)
            await watch.stop()

        return stop
