"""The store on SQLite: its parts put together over one file, for any number of processes of one host."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence

from cairnq.db.sqlite.executor import SqliteExecutor
from cairnq.db.sqlite.file import DatabaseFile
from cairnq.pure import arguments
from cairnq.pure.models import Beat
from cairnq.store.base import Installation
from cairnq.store.changing import Changing
from cairnq.store.exchanging import Exchanging
from cairnq.store.reading import Reading
from cairnq.store.runner import raise_translated
from cairnq.store.sqlite_file import FileChecks, check_given
from cairnq.store.submitting import Submitting
from cairnq.store.upkeep import Upkeep
from cairnq.store.wait import DONE_CHANNEL
from cairnq.store.watch import QUEUED_CHANNEL

DEFAULT_BUSY_TIMEOUT_MS = 5000

Stop = Callable[[], Awaitable[None]]


class SqliteStore(Submitting, Exchanging, Changing, Reading, Upkeep):
    """All of `TaskStore` on one SQLite file, which is made if it is not there.

    `path`: a plain path on a local disk. `busy_timeout_ms`: how long a write waits for other processes' writes before
    `DatabaseUnavailable`. `installation`: what an earlier `connect()` found; the checks are then skipped.
    `migrate=False`: check only. Threads and connections are made at the first use in a process, never before a fork.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        busy_timeout_ms: int = DEFAULT_BUSY_TIMEOUT_MS,
        installation: Installation | None = None,
        migrate: bool = True,
    ) -> None:
        check_given(path)
        self._busy_timeout_ms = arguments.integer(busy_timeout_ms, "busy_timeout_ms", least=0, most=2**31)
        self._migrate = migrate
        self._file = DatabaseFile(path, busy_timeout_s=busy_timeout_ms / 1000)
        self._connect_lock = asyncio.Lock()
        self._sqlite = SqliteExecutor(self._file)
        super().__init__(self._sqlite, installation)

    @property
    def path(self) -> str:
        """Absolute, symbolic links followed."""
        return self._file.path

    async def connect(self) -> Installation:
        """The connect-time checks, once; later calls return what the first found."""
        async with self._connect_lock:
            if self.installation is None:
                try:
                    self._install(await FileChecks(self._executor, self._file, migrate=self._migrate).run())
                except Exception as error:  # noqa: BLE001 - raised again, as ours
                    raise_translated(error)
        assert self.installation is not None
        return self.installation

    async def close(self) -> None:
        """Close what this process opened."""
        await self._executor.close()

    async def renew_lapsed(self, beats: Sequence[Beat]) -> None:
        """Renew these leases whatever they say: the clock that they were written by has been set.

        Only for what its holder still has by another clock; owner and attempt are compared as ever.
        """
        await self._rows(
            "beat",
            ["lapsed_too"],
            ids=[beat.task_id for beat in beats],
            worker_ids=[beat.worker_id for beat in beats],
            attempts=[beat.attempt for beat in beats],
            leases_ms=[beat.lease_ms for beat in beats],
        )

    async def vacuum_if_due(self) -> bool:
        """Never: SQLite leaves no dead rows, and new ones take the space of deleted ones."""
        return False

    def sibling(self) -> SqliteStore:
        """A store of the same file with threads of its own."""
        return SqliteStore(
            self.path,
            busy_timeout_ms=self._busy_timeout_ms,
            installation=self.installation,
            migrate=self._migrate,
        )

    async def listen(
        self,
        channels: Sequence[str],
        on_notify: Callable[[str, str], None],
        on_state: Callable[[bool], None],
        *,
        probe: Callable[[str], Awaitable[None]] | None = None,  # noqa: ARG002 - each look proves itself
    ) -> Stop:
        """See `TaskStore.listen`: the file's change counter is watched, every 20 ms and after each commit from here.

        It tells that something changed and not what: `cairnq_queued` comes for each queue that holds queued tasks,
        `cairnq_done` with an empty payload.
        """
        await self.connect()

        def on_change(queues: Sequence[str]) -> None:
            if QUEUED_CHANNEL in channels:
                for queue in queues:
                    on_notify(QUEUED_CHANNEL, queue)
            if DONE_CHANNEL in channels:
                on_notify(DONE_CHANNEL, "")

        subscription = self._sqlite.watch.subscribe(on_change, on_state)

        async def stop() -> None:
            self._sqlite.watch.unsubscribe(subscription)

        return stop

    async def notify(self, channel: str) -> None:  # noqa: ARG002 - the file has one change counter for all
        """Have whoever watches in this process look at once."""
        self._sqlite.watch.poke()
