"""The blocking client: each method hands its call to the asynchronous client, on a thread of this process."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, overload

from cairnq.client import DEFAULT_TIMEOUT_MS
from cairnq.client import CairnQ as Client
from cairnq.db.blocking import drive, lent
from cairnq.pure import urls
from cairnq.pure.errors import InvalidArgument, StoreClosed
from cairnq.pure.keywords import CallKeywords, ListKeywords, PurgeKeywords, SubmitKeywords
from cairnq.pure.models import Task, TaskDef, TaskRef, TaskStatus, WatchSignal
from cairnq.store.base import Installation, TaskStore
from cairnq.store.postgres import PostgresStore
from cairnq.store.sqlite import DEFAULT_BUSY_TIMEOUT_MS, SqliteStore
from cairnq.sync import thread
from cairnq.sync.thread import LoopThread

Arguments = ParamSpec("Arguments")
P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")

_submit: Callable[..., Coroutine[Any, Any, Task]] = Client.submit
_call: Callable[..., Coroutine[Any, Any, Any]] = Client.call
"""Their overloads stand below once more; the checker could not carry them through `_run`."""

OpenStore = Callable[[Installation | None], TaskStore]


class CairnQ:
    """`cairnq.CairnQ` for threads that block: the same methods, the same errors. Any number of threads may share one.

    Made by `at()`, `postgres()` or `sqlite()`, which open nothing: the first call does, in whichever process it is
    made, so that one made before a fork (a module of a prefork web server) serves each child over its own connections.
    Not for processes whose threads gevent or eventlet has replaced: its event loop would stop the others.
    """

    def __init__(self, open_store: OpenStore, **options: Any) -> None:
        """`open_store(installation)` makes a store that is not connected yet, one for each process that asks."""
        self._open_store = open_store
        self._options = options
        self._client = Client(open_store(None), **options)
        self._thread: LoopThread | None = None
        self._is_limited = options.get("max_queue_depth") is not None
        self._closed = False

    @classmethod
    def at(cls, url: str, **options: Any) -> Self:
        """See `cairnq.CairnQ.at`."""
        path = urls.client_file_of(url)
        return cls.postgres(url, **options) if path is None else cls.sqlite(path, **options)

    @classmethod
    def postgres(
        cls,
        source: str,
        *,
        min_size: int = 1,
        max_size: int = 10,
        schema: str | None = None,
        listen_database: str | None = None,
        **options: Any,
    ) -> Self:
        """`source`: a database URL. The other arguments are those of `cairnq.CairnQ.postgres`."""
        if not isinstance(source, str):
            raise InvalidArgument(f"the source must be a database URL, not {type(source).__name__}")

        def open_store(installation: Installation | None) -> TaskStore:
            return PostgresStore(
                source,
                min_size=min_size,
                max_size=max_size,
                schema=schema,
                listen_database=listen_database,
                installation=installation,
            )

        return cls(open_store, **options)

    @classmethod
    def sqlite(
        cls, path: str | os.PathLike[str], *, busy_timeout_ms: int = DEFAULT_BUSY_TIMEOUT_MS, **options: Any
    ) -> Self:
        """See `cairnq.CairnQ.sqlite`."""
        return cls(
            lambda installation: SqliteStore(path, busy_timeout_ms=busy_timeout_ms, installation=installation),
            **options,
        )

    def __enter__(self) -> Self:
        try:
            self.connect()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def connect(self) -> None:
        """Check the database (schema, migrations, protocol version) once. Optional: the first call does it too."""
        self._run(Client.connect)

    def close(self) -> None:
        """Close what this process opened. The client cannot be used again."""
        self._closed = True
        with thread.lock():
            used, self._thread = self._thread, None
        if used is not None and used.is_here:
            used.run(self._client.close())
            used.closed(self._client.close)

    # --- submit -----------------------------------------------------------------------------------

    @overload
    def submit(
        self, name: TaskDef[P, Any], payload: P, *, session: Any = None, **keywords: Unpack[SubmitKeywords]
    ) -> Task: ...
    @overload
    def submit(self, name: TaskDef[None, Any], *, session: Any = None, **keywords: Unpack[SubmitKeywords]) -> Task: ...
    @overload
    def submit(
        self, name: str, payload: Any = None, *, session: Any = None, **keywords: Unpack[SubmitKeywords]
    ) -> Task: ...
    def submit(self, name: Any, payload: Any = None, *, session: Any = None, **keywords: Any) -> Task:
        """As `cairnq.CairnQ.submit`, which explains the keywords.

        `session`: a connection of the caller's whose transaction the insert shall be part of, used on this thread: a
        `psycopg.Connection` (also the one inside Django's or SQLAlchemy's), on SQLite a `sqlite3.Connection` to the
        same file.
        """
        if session is None:
            return self._run(_submit, name, payload, **keywords)
        store = self._store_beside([{"name": name, "payload": payload, **keywords}])
        return drive(store.submit(name, payload, session=lent(session), **keywords))

    def submit_many(self, items: Sequence[Mapping[str, Any]], *, session: Any = None) -> list[Task]:
        if session is None:
            return self._run(Client.submit_many, items)
        return drive(self._store_beside(items).submit_many(items, session=lent(session)))

    @overload
    def call(self, name: TaskDef[P, R], payload: P, **keywords: Unpack[CallKeywords]) -> R: ...
    @overload
    def call(self, name: TaskDef[None, R], **keywords: Unpack[CallKeywords]) -> R: ...
    @overload
    def call(self, name: str, payload: Any = None, **keywords: Unpack[CallKeywords]) -> Any: ...
    def call(self, name: Any, payload: Any = None, **keywords: Any) -> Any:
        """As `cairnq.CairnQ.call`: submit, wait, and return the result."""
        return self._run(_call, name, payload, **keywords)

    # --- wait -------------------------------------------------------------------------------------

    def wait(
        self, task_id: str, *, timeout_ms: int = DEFAULT_TIMEOUT_MS, poll_ms: int = 100, max_poll_ms: int = 500
    ) -> Task:
        return self._run(Client.wait, task_id, timeout_ms=timeout_ms, poll_ms=poll_ms, max_poll_ms=max_poll_ms)

    def wait_by_key(
        self, key: str, *, timeout_ms: int = DEFAULT_TIMEOUT_MS, poll_ms: int = 100, max_poll_ms: int = 500
    ) -> Task:
        return self._run(Client.wait_by_key, key, timeout_ms=timeout_ms, poll_ms=poll_ms, max_poll_ms=max_poll_ms)

    def watch(
        self,
        on_signal: Callable[[WatchSignal], None],
        queues: Sequence[str] | None = None,
        poll_ms: int = 2000,
    ) -> Callable[[], None]:
        """As `cairnq.CairnQ.watch`. `on_signal` runs on the client's thread: it must not block, nor use the client."""
        stop = self._run(Client.watch, on_signal, queues, poll_ms)
        return lambda: self._run(_stopped, stop)

    # --- read -------------------------------------------------------------------------------------

    def get(self, task_id: str) -> Task | None:
        return self._run(Client.get, task_id)

    def get_by_key(self, key: str) -> Task | None:
        return self._run(Client.get_by_key, key)

    def get_status(self, task_id: str) -> TaskRef | None:
        return self._run(Client.get_status, task_id)

    def get_status_by_key(self, key: str) -> TaskRef | None:
        return self._run(Client.get_status_by_key, key)

    def stats(self, queue: str | None = None) -> dict[str, dict[TaskStatus, int]]:
        return self._run(Client.stats, queue)

    def queue_depth(self, queue: str, max_depth: int) -> int:
        return self._run(Client.queue_depth, queue, max_depth)

    # --- change -----------------------------------------------------------------------------------

    def cancel(self, task_id: str) -> Task | None:
        return self._run(Client.cancel, task_id)

    def cancel_by_key(self, key: str) -> Task | None:
        return self._run(Client.cancel_by_key, key)

    def retry(self, task_id: str, *, reset_attempt: bool = False) -> Task | None:
        return self._run(Client.retry, task_id, reset_attempt=reset_attempt)

    def retry_by_key(self, key: str, *, reset_attempt: bool = False) -> Task | None:
        return self._run(Client.retry_by_key, key, reset_attempt=reset_attempt)

    def purge(self, **which: Unpack[PurgeKeywords]) -> list[str]:
        return self._run(Client.purge, **which)

    def list(self, **which: Unpack[ListKeywords]) -> Sequence[Task]:
        return self._run(Client.list, **which)

    # --- over to the thread -----------------------------------------------------------------------

    def _run(
        self,
        method: Callable[Concatenate[Client, Arguments], Coroutine[Any, Any, T]],
        *args: Arguments.args,
        **keywords: Arguments.kwargs,
    ) -> T:
        self._check_open()
        here = thread.here()
        if self._thread is not here:
            self._move_to(here)
        return here.run(method(self._client, *args, **keywords))

    def _store_beside(self, items: Sequence[Mapping[str, Any]]) -> TaskStore:
        """The store, ready to submit over a connection that is lent: on that one nothing may wait."""
        self._check_open()
        if self._is_limited or self._client.store.installation is None:
            self._run(_prepare, items)
        return self._client.store

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the client is closed; open a new one")

    def _move_to(self, here: LoopThread) -> None:
        """In a process that has not used it yet. What a parent of this one used stays the parent's."""
        with thread.lock():
            if self._thread is here:
                return
            if self._thread is not None:
                self._client = Client(self._open_store(self._client.store.installation), **self._options)
            here.opened(self._client.close)
            self._thread = here


async def _prepare(client: Client, items: Sequence[Mapping[str, Any]]) -> None:
    await client.connect()
    await client.admit(items, may_wait=False)


async def _stopped(_client: Client, stop: Callable[[], Awaitable[None]]) -> None:
    await stop()
