"""One forked process and its channel, watched by the reactor until it is reaped."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from cairnq_supervisor.loop.house import House
from cairnq_supervisor.loop.reactor import READ, WRITE
from cairnq_supervisor.pure.messages import Message
from cairnq_supervisor.system import channel as channels
from cairnq_supervisor.system.channel import Channel, ChannelBroken
from cairnq_supervisor.system.processes import Ending, Process
from cairnq_supervisor.system.spawn import SpawnError, spawn


class Errand(NamedTuple):
    """What a child is forked for: its main, and its title in `ps`."""

    run: Callable[[Channel], int]
    title: str


class Parent(Protocol):
    """Whoever is told about a child."""

    def heard(self, message: Message) -> None: ...
    def broke(self, reason: str) -> None: ...
    def exited(self, ending: Ending) -> None: ...


class Child:
    """Made by `fork`. After `exited` was called it is of no further use."""

    def __init__(self, house: House, parent: Parent, process: Process, channel: Channel) -> None:
        self._house = house
        self._parent = parent
        self._process = process
        self._channel: Channel | None = channel
        house.pids.add(process.pid)
        house.descriptors.add(process.pidfd)
        house.reactor.watch(process.pidfd, lambda _events: self._reap())
        self._watch(channel)

    @classmethod
    def fork(cls, house: House, parent: Parent, errand: Errand) -> Child:
        """Raises `SpawnError`, and then nothing is left over."""
        try:
            ours, theirs = channels.pair()
        except OSError as error:
            raise SpawnError(f"socketpair: {error}") from error
        channel = Channel(ours)
        house.descriptors.add(channel.fileno())
        try:
            process = spawn(lambda: errand.run(Channel(theirs)), title=errand.title, descriptors=house.descriptors)
        except SpawnError:
            house.descriptors.discard(channel.fileno())
            channel.close()
            raise
        finally:
            theirs.close()
        return cls(house, parent, process, channel)

    @property
    def pid(self) -> int:
        return self._process.pid

    def say(self, message: Message, fd: int | None = None) -> None:
        """Never blocks. Without effect once the channel is broken."""
        if self._channel is None:
            return
        try:
            self._channel.send(message, fd)
        except ChannelBroken as error:
            self._break(str(error))
        else:
            self._watch(self._channel)

    def kill(self) -> None:
        """SIGKILL to the child and everything that it started."""
        self._process.kill_group()

    def _watch(self, channel: Channel) -> None:
        events = READ | WRITE if channel.congested else READ
        self._house.reactor.watch(channel, self._serve, events)

    def _serve(self, events: int) -> None:
        channel = self._channel
        if channel is None:
            return
        try:
            if events & WRITE:
                channel.flush()
                self._watch(channel)
            arrived = channel.receive() if events & READ else []
        except ChannelBroken as error:
            self._break(str(error))
            return
        for received in arrived:
            self._parent.heard(received.message)

    def _break(self, reason: str) -> None:
        self._close_channel()
        self._parent.broke(reason)

    def _reap(self) -> None:
        """The whole group dies before anything that the child held is touched; then its last words are heard."""
        self._process.kill_group()
        ending = self._process.reap()
        if ending is None:
            return
        self._house.pids.discard(self.pid)
        self._house.reactor.forget(self._process.pidfd)
        self._house.descriptors.discard(self._process.pidfd)
        self._last_words()
        self._close_channel()
        self._parent.exited(ending)

    def _last_words(self) -> None:
        while self._channel is not None:
            try:
                arrived = self._channel.receive()
            except ChannelBroken:
                return
            for received in arrived:
                self._parent.heard(received.message)
            if not arrived:
                return

    def _close_channel(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            self._house.reactor.forget(channel)
            self._house.descriptors.discard(channel.fileno())
            channel.close()
