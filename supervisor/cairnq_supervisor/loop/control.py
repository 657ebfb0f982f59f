"""Serves the control socket: one request a connection, bounded in size, time and number."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from typing import Any

from cairnq_supervisor.loop.reactor import READ, WRITE, Reactor
from cairnq_supervisor.pure.requests import MAX_REQUEST, BadRequest, Request, answered, parse
from cairnq_supervisor.system.control import ControlSocket
from cairnq_supervisor.system.descriptors import Descriptors

_PATIENCE = 5.0
"""Seconds that a client has to send its request and to take its answer."""

_MOST_CLIENTS = 32

Answer = Callable[[Request], Mapping[str, Any]]


class Control:
    """`answer(request)` returns what to send back, or raises `BadRequest`."""

    def __init__(self, listener: ControlSocket, reactor: Reactor, descriptors: Descriptors, answer: Answer) -> None:
        self._listener = listener
        self._reactor = reactor
        self._descriptors = descriptors
        self._answer = answer
        self._clients: set[_Client] = set()
        descriptors.add(*listener.descriptors)
        reactor.watch(listener, lambda _events: self._welcome())

    def close(self) -> None:
        for client in tuple(self._clients):
            client.close()
        self._reactor.forget(self._listener)
        self._listener.close()

    def _welcome(self) -> None:
        accepted = self._listener.accept()
        if accepted is None:
            return
        if len(self._clients) >= _MOST_CLIENTS:
            accepted.close()
            return
        self._clients.add(_Client(accepted, self._reactor, self._descriptors, self._answer, self._clients.discard))


class _Client:
    """One connection: a line in, a line out, the end."""

    def __init__(
        self,
        sock: socket.socket,
        reactor: Reactor,
        descriptors: Descriptors,
        answer: Answer,
        on_closed: Callable[[_Client], None],
    ) -> None:
        self._sock = sock
        self._reactor = reactor
        self._descriptors = descriptors
        self._answer = answer
        self._on_closed = on_closed
        self._inbox = bytearray()
        self._outbox = b""
        self._closed = False
        self._deadline = reactor.call_after(_PATIENCE, self.close)
        descriptors.add(sock.fileno())
        reactor.watch(sock, lambda _events: self._read(), READ)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._deadline.cancel()
        self._reactor.forget(self._sock)
        self._descriptors.discard(self._sock.fileno())
        self._sock.close()
        self._on_closed(self)

    def _read(self) -> None:
        try:
            piece = self._sock.recv(MAX_REQUEST)
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        self._inbox += piece
        line, newline, _ = bytes(self._inbox).partition(b"\n")
        if len(line) > MAX_REQUEST:
            self._reply({"error": f"a request has at most {MAX_REQUEST} bytes"})
        elif newline:
            self._reply(self._result(line))
        elif not piece:
            self.close()

    def _result(self, line: bytes) -> Mapping[str, Any]:
        try:
            return self._answer(parse(line))
        except BadRequest as error:
            return {"error": str(error)}

    def _reply(self, document: Mapping[str, Any]) -> None:
        self._outbox = answered(document)
        self._reactor.watch(self._sock, lambda _events: self._write(), WRITE)

    def _write(self) -> None:
        try:
            sent = self._sock.send(self._outbox)
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        self._outbox = self._outbox[sent:]
        if not self._outbox:
            self.close()
