"""A TCP proxy in the harness's own loop, before the server: cuts, refuses, delays and swallows what one host sends."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator

from cairnq.pure.clock import boottime

LOOPBACK = "127.0.0.1"
_PIECE = 65_536
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of zero seconds: closing resets the connection."""


class Proxy:
    """One way to the server at `host:port`. Every fault of it ends by itself; several may overlap."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._writers: set[asyncio.StreamWriter] = set()
        self._links: set[asyncio.Task[None]] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self._refused_until = self._delayed_until = self._swallowed_until = 0.0
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[Proxy]:
        self._server = await asyncio.start_server(self._serve, LOOPBACK, 0)
        try:
            yield self
        finally:
            self._server.close()
            for task in self._links:
                task.cancel()
            await asyncio.gather(*self._links, return_exceptions=True)

    def cut(self) -> None:
        """Reset what is connected now."""
        for writer in list(self._writers):
            with contextlib.suppress(OSError):  # the peer was faster
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()

    def refuse(self, seconds: float) -> None:
        """Cut, and reset whoever connects meanwhile."""
        self._refused_until = max(self._refused_until, boottime() + seconds)
        self.cut()

    def delay(self, seconds: float) -> None:
        """Meanwhile each piece arrives a tenth of a second late."""
        self._delayed_until = max(self._delayed_until, boottime() + seconds)

    async def swallow(self, seconds: float) -> None:
        """Nothing arrives, in either direction; what was sent meanwhile arrives at the end, as TCP has it."""
        self._swallowed_until = max(self._swallowed_until, boottime() + seconds)
        self._flows.clear()
        await asyncio.sleep(seconds)
        if boottime() >= self._swallowed_until:  # else a later fault goes on
            self._flows.set()

    def heal(self) -> None:
        """All faults are over."""
        self._refused_until = self._delayed_until = self._swallowed_until = 0.0
        self._flows.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        self._writers.add(writer)
        to_server: asyncio.StreamWriter | None = None
        try:
            if boottime() < self._refused_until:
                return
            from_server, to_server = await asyncio.open_connection(*self._target)
            self._writers.add(to_server)
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._pump(reader, to_server))
                pumps.create_task(self._pump(from_server, writer))
        except* OSError:
            pass  # an end of a connection is what both sides are to see, and nothing more
        finally:
            for end in (writer, to_server):
                if end is not None:
                    self._writers.discard(end)
                    end.transport.abort()
            self._links.discard(task)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while piece := await source.read(_PIECE):
            await self._flows.wait()
            if boottime() < self._delayed_until:
                await asyncio.sleep(0.1)
            sink.write(piece)
            await sink.drain()
        await self._flows.wait()
        sink.close()
