"""A model of the kernel and of children: what a supervisor forks, without a process behind it.

A child does what the test has it do, when it has it do so, or nothing. What the supervisor says to it is kept.
"""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Self
from unittest import mock

from cairnq.run.leases import LeaseTable
from cairnq_supervisor.loop import child as child_module
from cairnq_supervisor.loop import keeper_seat, worker_seat
from cairnq_supervisor.pure.keeper_messages import DutyDone, Ping, Pong, Settle, Settled
from cairnq_supervisor.pure.messages import Admit, Drain, Message, Quiesce, Resume
from cairnq_supervisor.roles.keeper import KeeperPlan
from cairnq_supervisor.roles.plan import WorkerPlan
from cairnq_supervisor.system.channel import Channel, ChannelBroken
from cairnq_supervisor.system.processes import Ending
from cairnq_supervisor.system.spawn import SpawnError

_FIRST_PID = 10_000_000
"""Above what a system gives out: no signal of the code under test can reach anybody."""


class ModelChild:
    """`plan` says what it is: a worker, or the keeper."""

    def __init__(self, pid: int, plan: WorkerPlan | KeeperPlan, channel: Channel) -> None:
        self.pid = pid
        self.plan = plan
        self.pidfd = os.eventfd(0)
        self.told: list[Message] = []
        self.is_ready = False
        self.killed = False
        self.reaped = False
        self.ending: Ending | None = None
        self.table: LeaseTable | None = None
        self._channel: Channel | None = Channel(socket.socket(fileno=os.dup(channel.fileno())))
        self._answered = 0
        if isinstance(plan, WorkerPlan):
            self.table = LeaseTable(plan.memory, plan.capacity)

    @property
    def worker_id(self) -> str | None:
        return self.plan.worker_id if isinstance(self.plan, WorkerPlan) else None

    @property
    def can_act(self) -> bool:
        return self.ending is None and not self.killed

    @property
    def hears(self) -> bool:
        return self._channel is not None

    @property
    def is_dismissed(self) -> bool:
        return any(isinstance(message, Drain) for message in self.told)

    @property
    def claims(self) -> bool:
        """As one that obeys would: it was let in, not told to leave, told last to go on, and is no orphan."""
        told = [type(message) for message in self.told]
        paused = [kind for kind in told if kind in (Quiesce, Resume)]
        return self.can_act and self.hears and Admit in told and Drain not in told and paused[-1:] != [Quiesce]

    def say(self, *messages: Message) -> None:
        """Without effect once its channel is gone."""
        for message in messages:
            if self._channel is not None and self.can_act:
                self._channel.send(message)

    def listen(self) -> None:
        while self._channel is not None:
            try:
                arrived = self._channel.receive()
            except ChannelBroken:
                self.hang_up()
                return
            for received in arrived:
                self.told.append(received.message)
                if received.fd is not None:
                    os.close(received.fd)
            if not arrived:
                return

    def answer(self) -> None:
        """A keeper's: all that it was told to do and has not done is done."""
        for message in self.told[self._answered :]:
            match message:
                case Settle(worker_id=worker_id):
                    self.say(Settled(worker_id, 0, 0, 0, 0, 0, {}), DutyDone(worker_id))
                case Ping():
                    self.say(Pong())
        self._answered = len(self.told)

    def end(self, *, code: int | None = None, signal: int | None = None) -> None:
        self.ending = Ending(code=code, signal=signal)
        self.hang_up()
        os.eventfd_write(self.pidfd, 1)

    def hang_up(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None


class _ModelProcess:
    """What the supervisor holds of a child."""

    def __init__(self, child: ModelChild) -> None:
        self._child = child
        self.pid = child.pid
        self.pidfd = child.pidfd

    def kill_group(self) -> None:
        self._child.killed = self._child.killed or self._child.ending is None

    def reap(self) -> Ending | None:
        if self._child.ending is not None:
            os.close(self.pidfd)
            self._child.reaped = True
        return self._child.ending


class World:
    """Forks models while it is entered. `on_fork(child)` is called for each."""

    def __init__(self, on_fork: Callable[[ModelChild], None]) -> None:
        self.children: list[ModelChild] = []
        self.refuses = False
        """The system has no process left."""
        self._on_fork = on_fork
        self._pids = itertools.count(_FIRST_PID)
        self._patches = ExitStack()

    def __enter__(self) -> Self:
        patches = (
            mock.patch.object(child_module, "spawn", self._spawn),
            mock.patch.object(worker_seat, "run_worker", self._be_born),
            mock.patch.object(keeper_seat, "run_keeper", self._be_born),
        )
        for patch in patches:
            self._patches.enter_context(patch)
        return self

    def __exit__(self, *_exception: object) -> None:
        self._patches.close()
        for child in self.unreaped:
            child.hang_up()
            os.close(child.pidfd)

    @property
    def unreaped(self) -> list[ModelChild]:
        return [child for child in self.children if not child.reaped]

    def workers(self) -> Iterator[ModelChild]:
        return (child for child in self.unreaped if child.table is not None)

    def keepers(self) -> Iterator[ModelChild]:
        return (child for child in self.unreaped if child.table is None)

    def _spawn(self, run: Callable[[], int], **_options: Any) -> _ModelProcess:
        if self.refuses:
            raise SpawnError("fork: no process is left")
        run()
        return _ModelProcess(self.children[-1])

    def _be_born(self, plan: WorkerPlan | KeeperPlan, channel: Channel) -> int:
        child = ModelChild(next(self._pids), plan, channel)
        self.children.append(child)
        self._on_fork(child)
        return 0
