"""Notices that a database file has changed, whoever changed it: a look at its change counter every few milliseconds.

`pragma data_version` reads shared memory; it takes no lock that a writer would wait for.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cairnq.db.sqlite.file import DatabaseFile
from cairnq.db.sqlite.owner import Owner
from cairnq.db.statements import Statements
from cairnq.pure.errors import CairnQError

LOOK_INTERVAL_S = 0.02
PAUSE_AFTER_ERROR_S = 0.5

OnChange = Callable[[Sequence[str]], None]


@dataclass(slots=True, eq=False)
class Subscription:
    """`on_change(queues)`: the file has changed, and these queues hold queued tasks now. `on_state(delivers)`."""

    loop: asyncio.AbstractEventLoop
    on_change: OnChange
    on_state: Callable[[bool], None]
    delivers: bool = False

    def report(self, delivers: bool) -> None:
        if delivers != self.delivers:
            self.delivers = delivers
            self.on_state(delivers)

    def changed(self, queues: Sequence[str]) -> None:
        self.report(True)
        self.on_change(queues)


class FileWatch(Owner):
    """A thread with a connection of its own, for as long as there are subscriptions.

    `poke()` makes it look at once, for what this process wrote itself.
    """

    def __init__(self, file: DatabaseFile) -> None:
        statements = Statements("sqlite", None)
        self._counter = statements.get("data_version").text
        self._look = statements.get("queued_queues").text
        super().__init__(file)

    def _renew(self) -> None:
        super()._renew()
        self._subscriptions: list[Subscription] = []
        self._lock = threading.Lock()  # guards the list and the thread's existence
        self._awake = threading.Event()

    @property
    def path(self) -> str:
        return self._file.path

    def poke(self) -> None:
        self._awake.set()

    def subscribe(self, on_change: OnChange, on_state: Callable[[bool], None]) -> Subscription:
        subscription = Subscription(asyncio.get_running_loop(), on_change, on_state)
        with self._lock:
            if self._thread is None:
                self._start_thread(self._run, "watch")  # which looks for subscriptions once this lock is free
            self._subscriptions.append(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        with self._lock:
            self._subscriptions = [one for one in self._subscriptions if one is not subscription]
        self._awake.set()

    # --- on the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        seen: tuple[int, int] | None = None
        pause = LOOK_INTERVAL_S
        while True:
            self._awake.wait(pause)
            self._awake.clear()
            with self._lock:
                if not self._subscriptions:
                    self._thread = None
                    break
                subscriptions = list(self._subscriptions)
            try:
                with self._guard:
                    version, queues = self._see(seen)
            except (sqlite3.Error, CairnQError):
                # Whoever runs statements meets the error, and reports it; here it only means: not delivering.
                self._tell(subscriptions, None)
                seen, pause = None, PAUSE_AFTER_ERROR_S
                with self._guard:
                    self._close()
                continue
            if queues is not None or any(not one.delivers for one in subscriptions):
                self._tell(subscriptions, queues or ())
            seen, pause = version, LOOK_INTERVAL_S
        with self._guard:
            self._close()

    def _see(self, seen: tuple[int, int] | None) -> tuple[tuple[int, int], Sequence[str] | None]:
        """The counter, which is that of one connection, and the queues if it has moved (None if not)."""
        self._file.check_in_place()
        if self._connection is None:
            self._connection = self._file.connect(writes=False)
        counter = self._connection.execute(self._counter).fetchone()[0]
        version = (id(self._connection), counter)
        if version == seen:
            return version, None
        return version, [row[0] for row in self._connection.execute(self._look)]

    def _tell(self, subscriptions: Sequence[Subscription], queues: Sequence[str] | None) -> None:
        for one in subscriptions:
            try:
                if queues is None:
                    one.loop.call_soon_threadsafe(one.report, False)
                else:
                    one.loop.call_soon_threadsafe(one.changed, queues)
            except RuntimeError:
                continue  # that loop is closed, and nobody listens on it
