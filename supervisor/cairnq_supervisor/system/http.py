"""A small HTTP/1.1 server for GET: bounded in size, time and connections, so that no client can hurt its process."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from cairnq_supervisor.pure.keys import Address

BACKLOG = 128
_PAUSE = 0.05
"""Seconds until a connection that could not be accepted is tried again."""

_MOMENT = 0.2
"""Seconds in which one that was let in last may still ask."""

_REQUEST_LINE = re.compile(rb"([A-Z]+) (/[\x21-\x7e]*) HTTP/1\.([01])")
_END_OF_HEAD = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes, seconds, and connections at a time. A connection more than the last pushes out the idlest."""

    head: int = 8192
    head_timeout: float = 5.0
    idle_timeout: float = 60.0
    answer_timeout: float = 10.0
    connections: int = 64


@dataclass(frozen=True, slots=True)
class Response:
    status: HTTPStatus
    body: str
    content_type: str = "text/plain; charset=utf-8"


Respond = Callable[[str], Awaitable[Response]]
"""The response to a path. It decides by itself how long to wait for what it needs."""


class BadRequest(Exception):
    """Not worth another word: the connection is closed after the answer."""

    def __init__(self, status: HTTPStatus, says: str) -> None:
        super().__init__(says)
        self.status = status


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    head_only: bool
    keep_alive: bool


def listen(address: Address, *, beside: Sequence[socket.socket] = ()) -> socket.socket:
    """A listening socket. Raises `OSError` when the address is taken, not this host's, or not resolvable.

    `beside`: sockets of this process, about to be closed, that may have the port under another host part. They share
    it for as long as this call takes, so that nobody else's mistake is covered up.
    """
    family, _, _, _, where = _resolved(address)
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _share_port([sock, *beside], yes=bool(beside))
        sock.bind(where)
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    finally:
        _share_port([each for each in (sock, *beside) if each.fileno() >= 0], yes=False)
    return sock


def _share_port(sockets: Iterable[socket.socket], *, yes: bool) -> None:
    for sock in sockets:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, yes)


def numeric_host(address: Address) -> str | None:
    """The host's number, so that nobody who must not wait has to ask for it; None where it has none now."""
    try:
        return str(_resolved(address)[4][0])
    except OSError:
        return None


def _resolved(address: Address) -> tuple[Any, ...]:
    return socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]


class HttpServer:
    """Serves `listener` until `stop`. `respond` is asked once per request.

    One connection is accepted in a turn of the loop, so that one whose request has arrived is read before those that
    came behind it could push it out.
    """

    def __init__(self, listener: socket.socket, respond: Respond, limits: Limits | None = None) -> None:
        self._listener = listener
        self._respond = respond
        self._limits = limits or Limits()
        self._connections: set[asyncio.Task[None]] = set()
        self._idle: dict[asyncio.Task[None], bool] = {}
        """Those that wait for a client, longest first, and whether it was answered before."""

        self._stopped = False

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    async def start(self) -> None:
        self._listener.setblocking(False)
        self._accept_when_due()

    def stop(self) -> None:
        """Accept no more than have arrived. Those that are being answered go on, the newest may still ask; the others,
        which were answered before, are closed. The listener may be closed.
        """
        self._stop_accepting()
        with contextlib.suppress(OSError):  # no descriptor is left for them
            while self._accept():
                pass
        self._close_idle(answered=True)
        asyncio.get_running_loop().call_later(_MOMENT, self._close_idle)

    async def finished(self) -> None:
        """After `stop`: every connection has ended."""
        while self._connections:
            await asyncio.wait(list(self._connections))

    async def close(self) -> None:
        """Accept no more, and cut every connection. The listener stays open."""
        self._stop_accepting()
        for task in list(self._connections):
            task.cancel()
        await self.finished()

    def _stop_accepting(self) -> None:
        if not self._stopped:
            self._stopped = True
            asyncio.get_running_loop().remove_reader(self._listener)

    def _accept_when_due(self) -> None:
        if not self._stopped:
            asyncio.get_running_loop().add_reader(self._listener, self._accept_or_pause)

    def _accept_or_pause(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            self._accept()
        except OSError:  # no descriptor for it
            loop.remove_reader(self._listener)
            loop.call_later(_PAUSE, self._accept_when_due)

    def _accept(self) -> bool:
        """False: none waits."""
        try:
            sock, _ = self._listener.accept()
        except BlockingIOError:
            return False
        except ConnectionError:  # it has left again
            return True
        self._admit(sock)
        return True

    def _close_idle(self, *, answered: bool = False) -> None:
        for task, was_answered in list(self._idle.items()):
            if was_answered or not answered:
                task.cancel()

    def _admit(self, sock: socket.socket) -> None:
        if len(self._connections) >= self._limits.connections and not self._push_out():
            sock.close()
            return
        task = asyncio.ensure_future(self._meet(sock))
        self._connections.add(task)
        task.add_done_callback(lambda task: self._dismiss(task, sock))

    def _dismiss(self, task: asyncio.Task[None], sock: socket.socket) -> None:
        """A task that was cancelled before its first step has closed nothing."""
        self._connections.discard(task)
        sock.close()

    def _push_out(self) -> bool:
        """Make room: the connection that has waited longest for its client goes. False: all are being answered."""
        oldest = next(iter(self._idle), None)
        if oldest is None:
            return False
        del self._idle[oldest]
        self._connections.discard(oldest)
        oldest.cancel()
        return True

    async def _meet(self, sock: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=sock, limit=self._limits.head)
        task = asyncio.current_task()
        assert task is not None
        try:
            await self._serve(task, reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client left, dawdled, or was pushed out
        finally:
            self._idle.pop(task, None)
            writer.transport.abort()

    async def _serve(
        self, task: asyncio.Task[None], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Requests of one connection, one after another."""
        limits, patience = self._limits, self._limits.head_timeout
        going_on, answered = True, False
        while going_on:
            self._idle[task] = answered
            try:
                request = await _read(reader, patience, limits.head_timeout)
            except BadRequest as bad:
                self._idle.pop(task, None)
                await self._write(writer, Response(bad.status, f"{bad}\n"), head_only=False, going_on=False)
                break
            self._idle.pop(task, None)
            response = await self._respond(request.path)
            going_on, answered = request.keep_alive and not self._stopped, True
            patience = limits.idle_timeout
            await self._write(writer, response, head_only=request.head_only, going_on=going_on)
        writer.close()
        with contextlib.suppress(OSError):  # it went first
            async with asyncio.timeout(limits.answer_timeout):
                await writer.wait_closed()

    async def _write(
        self, writer: asyncio.StreamWriter, response: Response, *, head_only: bool, going_on: bool
    ) -> None:
        body = response.body.encode(errors="replace")
        head = (
            f"HTTP/1.1 {response.status} {response.status.phrase}\r\n"
            f"Content-Type: {response.content_type}\r\n"
            f"Content-Length: {len(body)}\r\n"
            f"Connection: {'keep-alive' if going_on else 'close'}\r\n"
            "Cache-Control: no-store\r\n"
            "X-Content-Type-Options: nosniff\r\n"
            "\r\n"
        )
        writer.write(head.encode() + (b"" if head_only else body))
        async with asyncio.timeout(self._limits.answer_timeout):
            await writer.drain()


async def _read(reader: asyncio.StreamReader, patience: float, head_timeout: float) -> Request:
    """The next request: its first byte within `patience` seconds, all of its head `head_timeout` after that."""
    async with asyncio.timeout(patience):
        first = await reader.readexactly(1)
    try:
        async with asyncio.timeout(head_timeout):
            head = first + await reader.readuntil(_END_OF_HEAD)
    except TimeoutError as error:
        raise BadRequest(HTTPStatus.REQUEST_TIMEOUT, "the request did not end") from error
    except asyncio.LimitOverrunError as error:
        raise BadRequest(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the request's head is too large") from error
    return parse(head)


def parse(head: bytes) -> Request:
    """Raises `BadRequest` for whatever is not a GET or HEAD without a body."""
    line, *fields = head.removesuffix(_END_OF_HEAD).split(b"\r\n")
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        raise BadRequest(HTTPStatus.BAD_REQUEST, "not an HTTP/1 request")
    method, target, minor = match.groups()
    if method not in (b"GET", b"HEAD"):
        raise BadRequest(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are served here")
    headers = {name.strip().lower(): value.strip() for name, _, value in (field.partition(b":") for field in fields)}
    if headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers:
        raise BadRequest(HTTPStatus.BAD_REQUEST, "a body is not expected here")
    wish = headers.get(b"connection", b"").lower()
    keep_alive = wish != b"close" if minor == b"1" else wish == b"keep-alive"
    return Request(target.partition(b"?")[0].decode("ascii"), method == b"HEAD", keep_alive)
