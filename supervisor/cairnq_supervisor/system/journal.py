"""Where events go: one line each to standard error and, where asked for, to a second descriptor. Never blocks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from cairnq_supervisor.pure.chronicle import Chronicle
from cairnq_supervisor.pure.rendering import Level, Occurrence, as_json, as_text
from cairnq_supervisor.system.sink import LineSink

_PRIORITIES = {Level.DEBUG: 7, Level.INFO: 6, Level.WARNING: 4, Level.ERROR: 3}
_STDERR = 2
_ASKED_FOR = frozenset({"supervisor.status", "worker.stacks"})
"""Answers to a signal. A status that quoted the status before would double with each."""


class Journal:
    """`emit("worker.ready", queue=..., pid=...)` renders an event for every reader."""

    def __init__(self, *, log: str | None, events_fd: int | None) -> None:
        """`log` is "text" or "json"; None: text on a terminal or a pipe. `events_fd` gets every event as JSON."""
        self.chronicle = Chronicle()
        self.latest: Occurrence | None = None
        """The last event that was worth a line and that nobody had asked for."""

        self._log = LineSink(_STDERR)
        self._as_json = log == "json"
        self._prefixed = _is_journal(_STDERR)
        self._events = None if events_fd is None else LineSink(events_fd)
        self._on_congested: Callable[[LineSink], None] | None = None

    def emit(self, name: str, /, **fields: Any) -> None:
        occurrence = Occurrence(time.time(), name, fields)
        self.chronicle.note(name, fields)
        if occurrence.level is not Level.DEBUG and name not in _ASKED_FOR:
            self.latest = occurrence
        if self._events is not None:
            self._put(self._events, as_json, occurrence)
        if occurrence.level is not Level.DEBUG:
            self._put(self._log, self._line, occurrence)

    @property
    def own_descriptors(self) -> tuple[int, ...]:
        """What no child keeps: its end tells the reader that the supervisor is gone."""
        return () if self._events is None or self._events.fd == _STDERR else (self._events.fd,)

    def when_congested(self, callback: Callable[[LineSink], None]) -> None:
        """`callback(sink)` is to call `sink.flush` once the sink's descriptor is writable."""
        self._on_congested = callback

    def _line(self, occurrence: Occurrence) -> str:
        line = as_json(occurrence) if self._as_json else as_text(occurrence)
        if not self._prefixed:
            return line
        priority = f"<{_PRIORITIES[occurrence.level]}>"  # each line is a record of its own there
        return "\n".join(priority + part for part in line.split("\n"))

    def _put(self, sink: LineSink, render: Callable[[Occurrence], str], occurrence: Occurrence) -> None:
        if sink.dropped and not sink.congested and not sink.gone:
            dropped, sink.dropped = sink.dropped, 0
            sink.write(render(Occurrence(time.time(), "events.dropped", {"count": dropped})))
            if sink.dropped:  # this line too; but it is none that anybody missed
                sink.dropped = dropped
        sink.write(render(occurrence))
        if sink.congested and self._on_congested is not None:
            self._on_congested(sink)


def _is_journal(fd: int) -> bool:
    """Whether `fd` is the journal's socket: then lines carry their priority."""
    try:
        device, _, inode = os.environ.get("JOURNAL_STREAM", "").partition(":")
        status = os.fstat(fd)
        return (status.st_dev, status.st_ino) == (int(device), int(inode))
    except (OSError, ValueError):
        return False
