"""A child's end of its channel, on the child's own asyncio loop; and how it learns that it is an orphan."""

from __future__ import annotations

import asyncio
import threading
import time
import traceback
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from cairnq.pure.errors import ConnectError
from cairnq_supervisor.pure.exits import Exit
from cairnq_supervisor.pure.messages import Event, Message
from cairnq_supervisor.pure.rendering import Occurrence, as_text
from cairnq_supervisor.system import signals
from cairnq_supervisor.system.channel import Channel, ChannelBroken, Received
from cairnq_supervisor.system.sink import LineSink

_MAX_WAITING = 1 << 20
"""Bytes of unsent messages past which events are dropped and counted: a stopped supervisor must not fill our memory."""

GOODBYE = 1.0
"""Seconds for a child's last events to leave."""


class Link:
    """Made inside a running loop. `on_message` is called for each message, in order; it must not block."""

    def __init__(self, channel: Channel, on_message: Callable[[Received], None]) -> None:
        self._channel = channel
        self._on_message = on_message
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._dropped = 0
        self._sent = asyncio.Event()
        self.orphaned = asyncio.Event()
        """Set once the supervisor is gone: its end of the channel closed, or the kernel said so."""

    def open(self) -> None:
        self._loop.add_signal_handler(signals.ORPHANED, self._lose)
        self._loop.add_reader(self._channel.fileno(), self._read)

    def send(self, message: Message) -> None:
        """To the supervisor, now or when it reads again. Without effect once it is gone."""
        if self.orphaned.is_set():
            return
        try:
            self._channel.send(message)
        except ChannelBroken:
            self._lose()
        else:
            if self._channel.congested:
                self._sent.clear()
                self._loop.add_writer(self._channel.fileno(), self._write)
            else:
                self._sent.set()

    def emit(self, name: str, /, **fields: Any) -> None:
        """An event for the supervisor to render; an orphan writes it to standard error itself. From any thread."""
        plain = _plain(fields)
        if threading.get_ident() == self._thread:
            self._emit(name, plain)
        else:
            self._loop.call_soon_threadsafe(self._emit, name, plain)

    def _emit(self, name: str, plain: dict[str, Any]) -> None:
        if self.orphaned.is_set():
            LineSink(2).write(as_text(Occurrence(time.time(), name, plain)))
        elif self._channel.waiting > _MAX_WAITING:
            self._dropped += 1
        else:
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                self.send(Event("events.dropped", {"count": dropped}))
            self.send(Event(name, plain))

    async def flush(self, patience: float) -> None:
        """Give what waits unsent at most `patience` seconds."""
        if self._channel.congested:
            await asyncio.wait([asyncio.ensure_future(self._sent.wait())], timeout=patience)

    def _read(self) -> None:
        try:
            arrived = self._channel.receive()
        except ChannelBroken:
            self._lose()
            return
        for received in arrived:
            self._on_message(received)

    def _write(self) -> None:
        try:
            self._channel.flush()
        except ChannelBroken:
            self._lose()
            return
        if not self._channel.congested:
            self._loop.remove_writer(self._channel.fileno())
            self._sent.set()

    def _lose(self) -> None:
        if self.orphaned.is_set():
            return
        self._loop.remove_reader(self._channel.fileno())
        self._loop.remove_writer(self._channel.fileno())
        self.orphaned.set()
        self._sent.set()


async def guarded(noun: str, link: Link, life: Coroutine[Any, Any, int]) -> int:
    """The border of a child: what ends its life unexpectedly becomes an event, and the exit code of a bug."""
    try:
        return await life
    except Exception as error:  # noqa: BLE001 - the border of the child
        link.emit(f"{noun}.crashed", error=error)
        await link.flush(GOODBYE)
        return Exit.SOFTWARE


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Exceptions as text, with the traceback where there is one; the rest as it is.

    A database that cannot be used is no bug: the name and the sentence of its error say all.
    """
    plain: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, BaseException):
            plain[name] = f"{type(value).__name__}: {value}"
            if value.__traceback__ is not None and not isinstance(value, ConnectError):
                plain["traceback"] = "".join(traceback.format_exception(value))
        else:
            plain[name] = value if isinstance(value, str | int | float | bool | None) else _json_like(value)
    return plain


def _json_like(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _json_like(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_json_like(inner) for inner in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
