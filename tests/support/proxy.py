"""A TCP proxy before a server that fails on command: refuses, swallows, resets, is slow."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tests.support.cluster import at_port, free_port

CALL_TIMEOUT = 10.0
"""Seconds that a command to the proxy's thread may take."""

TURNS_TO_MEET = 4
"""Turns of the loop between asyncio's accept and `_serve`: a task, its transport, the protocol's call, ours."""


class Direction(StrEnum):
    REQUESTS = "requests"  # client to server
    REPLIES = "replies"  # server to client


@dataclass(slots=True, eq=False)
class _Link:
    """One client's connection and the one to the server behind it."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter | None = None
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    aborted: bool = False

    def abort(self) -> None:
        """Both ends see a reset, not an orderly end."""
        self.aborted = True
        for writer in (self.client, self.server):
            if writer is not None:
                with contextlib.suppress(OSError):  # the peer was faster
                    writer.get_extra_info("socket").setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                    )
                writer.transport.abort()


class Proxy:
    """Listens on a loopback port of its own, in a thread of its own; every method may be called from any thread."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._links: set[_Link] = set()
        self._changed = threading.Condition()
        self._delay = 0.0
        self._flows: dict[Direction, asyncio.Event] = {}
        self._listener: asyncio.Server | None = None
        self.port = free_port()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._call(self._open())

    def dsn(self, direct: str) -> str:
        """The DSN of the same database through this proxy."""
        return at_port(direct, self.port)

    @property
    def connections(self) -> int:
        """How many clients are connected now."""
        with self._changed:
            return len(self._links)

    def wait_for_connections(self, wanted: Callable[[int], bool], timeout: float = CALL_TIMEOUT) -> bool:
        """Blocks until `wanted(number of clients)` holds; False after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: wanted(len(self._links)), timeout)

    # --- faults -----------------------------------------------------------------------------------

    def pass_through(self) -> None:
        """Work again: accept, pass on what was swallowed, no delay."""
        self._call(self._pass_through())

    def refuse(self) -> None:
        """Nothing listens any more, and what was connected is reset: the server's host is up, the server is not."""
        self._call(self._refuse())

    def reset(self) -> None:
        """Every connection that stands is reset; new ones are accepted."""
        self._call(self._reset())

    def black_hole(self, *directions: Direction) -> None:
        """Bytes of these directions (both, if none is named) go nowhere, and nobody is told: a cable was pulled.

        They are kept, as TCP would keep them, and arrive after `pass_through`.
        """
        self._call(self._black_hole(directions or tuple(Direction)))

    def delay(self, seconds: float) -> None:
        """Everything arrives that much later, in each direction."""
        self._call(self._set_delay(seconds))

    def close(self) -> None:
        self._call(self._refuse())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # --- inside the thread ------------------------------------------------------------------------

    def _call(self, command: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(command, self._loop).result(CALL_TIMEOUT)

    async def _open(self) -> None:
        self._flows = {direction: asyncio.Event() for direction in Direction}
        await self._pass_through()

    async def _pass_through(self) -> None:
        self._delay = 0.0
        for flow in self._flows.values():
            flow.set()
        if self._listener is None:
            self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def _refuse(self) -> None:
        if self._listener is not None:
            await self._accept_no_more(self._listener)
            self._listener.close()
            self._listener = None
        await self._reset()

    async def _accept_no_more(self, listener: asyncio.Server) -> None:
        """What asyncio has accepted and not yet met when its server closes is left open for ever (CPython 3.11)."""
        for sock in listener.sockets:
            self._loop.remove_reader(sock)
        for _ in range(TURNS_TO_MEET):
            await asyncio.sleep(0)

    async def _reset(self) -> None:
        links = list(self._links)
        for link in links:
            link.abort()
            for task in link.tasks if link.server is not None else ():
                task.cancel()
        await asyncio.gather(*(task for link in links for task in link.tasks), return_exceptions=True)

    async def _black_hole(self, directions: tuple[Direction, ...]) -> None:
        for direction in directions:
            self._flows[direction].clear()

    async def _set_delay(self, seconds: float) -> None:
        self._delay = seconds

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link(client=writer)
        task = asyncio.current_task()
        assert task is not None
        link.tasks.add(task)
        self._count(link, present=True)
        try:
            await self._join(link, reader)
        except* (OSError, asyncio.CancelledError):  # of a pump: in a group
            link.abort()
        finally:
            self._count(link, present=False)

    async def _join(self, link: _Link, reader: asyncio.StreamReader) -> None:
        from_server, link.server = await asyncio.open_connection("127.0.0.1", self._target_port)
        if link.aborted:  # meanwhile; a connection that is cancelled as it comes about would be nobody's
            link.abort()
            return
        async with asyncio.TaskGroup() as pumps:
            for source, sink, direction in (
                (reader, link.server, Direction.REQUESTS),
                (from_server, link.client, Direction.REPLIES),
            ):
                pumps.create_task(self._pump(source, sink, direction))

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, direction: Direction) -> None:
        while data := await source.read(65536):
            await self._flows[direction].wait()
            if self._delay:
                await asyncio.sleep(self._delay)  # sleep: being late is what was asked for
            sink.write(data)
            await sink.drain()
        await self._flows[direction].wait()
        sink.close()

    def _count(self, link: _Link, *, present: bool) -> None:
        with self._changed:
            if present:
                self._links.add(link)
            else:
                self._links.discard(link)
            self._changed.notify_all()
