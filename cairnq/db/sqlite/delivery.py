"""Carries results from the threads that run statements back to the event loops that wait for them."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Values = Mapping[str, Any]
"""By number, as text: `?1` takes the value of "1". Some releases of Python warn where they come as a sequence."""


@dataclass(slots=True, eq=False)
class Reply:
    """Where one result goes. Made on the loop that waits."""

    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    value: Any = None
    error: BaseException | None = None

    @classmethod
    def here(cls) -> Reply:
        loop = asyncio.get_running_loop()
        return cls(loop.create_future(), loop)

    @property
    def is_unwanted(self) -> bool:
        """The waiting task was cancelled. Read on another thread: a hint, which may come late."""
        return self.future.cancelled()


@dataclass(slots=True, eq=False)
class Statement:
    """One statement that wants to be run, by whichever thread. `as_mappings`: rows as dictionaries, else as tuples."""

    text: str
    values: Values
    as_mappings: bool = False
    reply: Reply = field(default_factory=Reply.here)
    since: float = field(default_factory=time.monotonic)
    """From here on the busy time-out runs."""

    def run(self, connection: sqlite3.Connection) -> None:
        """Puts the rows into the reply. Raises what SQLite raises."""
        cursor = connection.execute(self.text, self.values)
        rows = cursor.fetchall()
        if self.as_mappings and cursor.description is not None:
            names = [column[0] for column in cursor.description]
            rows = [dict(zip(names, row, strict=True)) for row in rows]
        self.reply.value = rows


def deliver(replies: Iterable[Reply]) -> None:
    """Wake each loop once, however many results it gets."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Reply]] = {}
    for reply in replies:
        by_loop.setdefault(reply.loop, []).append(reply)
    for loop, some in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, some)
        except RuntimeError:
            continue  # that loop is closed, and nobody waits on it


def _resolve(replies: Sequence[Reply]) -> None:
    for reply in replies:
        if reply.future.done():
            continue
        if reply.error is None:
            reply.future.set_result(reply.value)
        else:
            reply.future.set_exception(reply.error)
