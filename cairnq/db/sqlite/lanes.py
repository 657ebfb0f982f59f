"""Threads that own a connection each: they run what they are given in order, and a fork finds them closed."""

from __future__ import annotations

import sqlite3
import threading
from abc import ABC, abstractmethod
from queue import SimpleQueue
from typing import Generic, TypeVar

from cairnq.db.fault import Fault
from cairnq.db.sqlite import faults
from cairnq.db.sqlite.delivery import Reply, Statement, deliver
from cairnq.db.sqlite.file import DatabaseFile
from cairnq.db.sqlite.owner import Owner

Item = TypeVar("Item")


class Lane(Owner, ABC, Generic[Item]):
    """The thread starts at the first item and ends at `stop()`."""

    def __init__(self, file: DatabaseFile, name: str, *, writes: bool) -> None:
        super().__init__(file)
        self._name = name
        self._writes = writes

    def _renew(self) -> None:
        super()._renew()
        self._queue: SimpleQueue[Item | Reply] = SimpleQueue()
        self._starting = threading.Lock()
        self._is_serving = False

    @property
    def load(self) -> int:
        """How many items it has to serve, more or less: it is at work meanwhile."""
        return self._queue.qsize() + self._is_serving

    def put(self, item: Item) -> None:
        self._start()
        self._queue.put(item)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._start_thread(self._run, self._name)

    async def stop(self) -> None:
        """Returns when everything put before it was served and the connection is closed."""
        with self._starting:
            thread, self._thread = self._thread, None
        if thread is None:
            return
        farewell = Reply.here()
        self._queue.put(farewell)
        await farewell.future
        thread.join()  # it is at its last instruction; a fork must not find it there

    # --- on the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            item = self._take()
            with self._guard:
                if isinstance(item, Reply):
                    self._retire()
                    self._close()
                    deliver([item])
                    return
                self._is_serving = True
                self._serve(item)
                self._is_serving = False

    def _take(self) -> Item | Reply:
        return self._queue.get()

    @abstractmethod
    def _serve(self, item: Item) -> None:
        """Run one item, answer it whatever happens, and raise nothing."""

    def _retire(self) -> None:
        """The last thing before the connection is closed for good."""

    def _ready(self) -> sqlite3.Connection:
        self._file.check_in_place()
        if self._connection is None:
            self._connection = self._file.connect(writes=self._writes)
        return self._connection

    def _close_if_broken(self, error: BaseException) -> None:
        """After an I/O error the next statement gets a connection that knows nothing of it."""
        if faults.is_sqlite(error) and faults.classify(error) is Fault.GONE:
            self._close()


class ReadLane(Lane[Statement]):
    """Reads see the last commit, and go on while a writer writes or waits."""

    def __init__(self, file: DatabaseFile, name: str) -> None:
        super().__init__(file, name, writes=False)

    def _serve(self, item: Statement) -> None:
        if item.reply.is_unwanted:
            return
        try:
            item.run(self._ready())
        except Exception as error:  # noqa: BLE001 - the border of a thread: whoever waits gets it
            item.reply.error = error
            self._close_if_broken(error)
        deliver([item.reply])
