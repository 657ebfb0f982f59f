"""One end of the socket between the supervisor and a child. Nothing here ever blocks; what cannot be sent yet waits."""

from __future__ import annotations

import array
import contextlib
import os
import socket
from collections import deque
from typing import NamedTuple

from cairnq_supervisor.pure import wire
from cairnq_supervisor.pure.messages import Message

_RECEIVE = 65_536
_MAX_WAITING = 16 << 20
"""Bytes. A peer that leaves this much unread does not read at all."""


class ChannelBroken(Exception):
    """The peer has gone, does not read, or speaks another language."""


class Received(NamedTuple):
    message: Message
    fd: int | None
    """A descriptor that came with it; the receiver's own now."""


class _Packet(NamedTuple):
    data: bytes
    fd: int | None
    replaceable: Message | None


class Channel:
    """A SEQPACKET socket that carries messages, in order, and at most one descriptor with each."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._assembler = wire.Assembler()
        self._fd: int | None = None
        self._outbox: deque[_Packet] = deque()
        self._waiting = 0

    def fileno(self) -> int:
        return self._sock.fileno()

    @property
    def congested(self) -> bool:
        """Something waits to be sent: call `flush` when the socket is writable."""
        return bool(self._outbox)

    @property
    def waiting(self) -> int:
        """Bytes that the peer has not taken yet."""
        return self._waiting

    def send(self, message: Message, fd: int | None = None) -> None:
        """Send, or keep until `flush`. Raises `ChannelBroken`.

        A replaceable message that already waits is not kept twice. `fd` stays the caller's.
        """
        waiting = message if message.replaceable else None
        if waiting is not None and any(packet.replaceable == waiting for packet in self._outbox):
            return
        for data in wire.encode(message):
            self._outbox.append(_Packet(data, None if fd is None else os.dup(fd), waiting))
            self._waiting += len(data)
            fd = None
        self.flush()
        if self._waiting > _MAX_WAITING:
            raise ChannelBroken(f"the peer left {self._waiting} bytes unread")

    def flush(self) -> None:
        """Send what the socket takes. Raises `ChannelBroken`."""
        while self._outbox:
            packet = self._outbox[0]
            try:
                self._put(packet)
            except BlockingIOError:
                return
            except OSError as error:
                raise ChannelBroken(f"cannot send: {error.strerror}") from error
            self._outbox.popleft()
            self._waiting -= len(packet.data)
            if packet.fd is not None:
                os.close(packet.fd)

    def receive(self) -> list[Received]:
        """All complete messages that have arrived. Raises `ChannelBroken` once nothing is left before the end."""
        arrived: list[Received] = []
        while True:
            try:
                packet = self._take()
            except BlockingIOError:
                return arrived
            except OSError as error:
                packet, reason = b"", f"cannot receive: {error.strerror}"
            else:
                reason = "the peer closed it"
            if not packet:
                if arrived:
                    return arrived
                raise ChannelBroken(reason)
            message = self._assemble(packet)
            if message is not None:
                arrived.append(Received(message, self._fd))
                self._fd = None

    def close(self) -> None:
        self._sock.close()
        for packet in self._outbox:
            if packet.fd is not None:
                os.close(packet.fd)
        self._outbox.clear()

    def _assemble(self, packet: bytes) -> Message | None:
        try:
            return self._assembler.feed(packet)
        except wire.BadMessage as error:
            raise ChannelBroken(f"the peer sent {error}") from error

    def _put(self, packet: _Packet) -> None:
        if packet.fd is None:
            self._sock.send(packet.data)
        else:
            self._sock.sendmsg([packet.data], [_rights(packet.fd)])

    def _take(self) -> bytes:
        space = socket.CMSG_SPACE(array.array("i").itemsize)
        data, ancillary, _, _ = self._sock.recvmsg(_RECEIVE, space, socket.MSG_CMSG_CLOEXEC)
        for level, kind, payload in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds = array.array("i")
                fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
                self._keep(fds)
        return data

    def _keep(self, fds: array.array[int]) -> None:
        for fd in fds:
            if self._fd is not None:
                with contextlib.suppress(OSError):
                    os.close(self._fd)
            self._fd = fd


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected ends: the supervisor's and the child's."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def _rights(fd: int) -> tuple[int, int, array.array[int]]:
    return socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd])
