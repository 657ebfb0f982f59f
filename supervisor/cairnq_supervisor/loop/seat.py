"""A seat: a place for one child process, driven through the lifecycle table by what the child and the clock do."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from cairnq_supervisor.loop import outages
from cairnq_supervisor.loop.child import Child, Errand
from cairnq_supervisor.loop.house import House
from cairnq_supervisor.loop.reactor import Timer
from cairnq_supervisor.pure.lifecycle import LIVE, SEAT_TABLE, SeatAction, SeatEvent, SeatState
from cairnq_supervisor.pure.messages import BootFailed, Drain, Drained, Event, Message, Quiesce, Ready, Resume
from cairnq_supervisor.pure.policy import Respawn
from cairnq_supervisor.system.processes import Ending
from cairnq_supervisor.system.spawn import SpawnError

KILL_AFTER = 1.5
"""Seconds past a drain's deadline at which a child that has not left is killed."""

HANG_UP = 1.0
"""Seconds that a child may live on after it closed its channel."""

_REASONS = {
    SeatEvent.BOOT_TIMEOUT: "not ready within boot_timeout",
    SeatEvent.DRAIN: "told to leave before it was ready",
    SeatEvent.DRAIN_TIMEOUT: "still there after drain_timeout",
    SeatEvent.STUCK: "holds calls that can only end with their process",
}
_FROM_OUTSIDE = frozenset({SeatEvent.DRAIN, SeatEvent.DRAIN_TIMEOUT, SeatEvent.STUCK})


class Seat(ABC):
    """One child at a time. `review` is called after every change of state."""

    noun: str

    def __init__(self, house: House, respawn: Respawn, review: Callable[[], None]) -> None:
        self.house = house
        self.state = SeatState.STOPPED
        self.respawn = respawn
        self.child: Child | None = None
        self.ready_since: float | None = None
        self.boot_failure: BootFailed | None = None
        self.kill_reason: str | None = None
        self.cause = ""
        """Why the latest child ended."""
        self.ended_from_outside = False
        """The supervisor killed the latest child for a cause outside its calls."""
        self.left_in_order = False
        """The latest child was told to leave and did so by itself."""
        self.wanted = True
        """A successor is due when its child ends."""
        self._review = review
        self._quiesced = False
        self._drain_deadline = 0.0
        self._timer: Timer | None = None
        self._ending: Ending | None = None

    # What a kind of seat adds.

    @property
    @abstractmethod
    def identity(self) -> Mapping[str, Any]:
        """The fields that name this seat in events."""

    @abstractmethod
    def errand(self) -> Errand:
        """What the next child is forked for. Raises `OSError` when the system refuses what it needs."""

    @abstractmethod
    def forked(self) -> None:
        """The child exists."""

    @abstractmethod
    def admit(self) -> None:
        """The child is ready: let it begin."""

    @abstractmethod
    def told(self, message: Message) -> None:
        """A message that is not about the child's life."""

    @abstractmethod
    def settle(self, ending: Ending | None) -> None:
        """No child is left here (None: the fork was refused): see to what it held."""

    # What the supervisor asks of a seat.

    @property
    def pid(self) -> int | None:
        return self.child.pid if self.child is not None else None

    @property
    def live(self) -> bool:
        return self.state in LIVE

    @property
    def flapping(self) -> bool:
        return self.respawn.flapping(now=self.house.clock(), ready_since=self.ready_since)

    def start(self) -> None:
        self.fill()

    def fill(self) -> None:
        """Fork, if there is no process."""
        self._advance(SeatEvent.SPAWN)

    def due(self) -> None:
        """The pause after a death is over."""
        self.fill()

    def quiesce(self) -> None:
        self._quiesced = True
        self._advance(SeatEvent.QUIESCE)

    def resume(self) -> None:
        self._quiesced = False
        self._advance(SeatEvent.RESUME)

    def drain(self, deadline: float) -> None:
        """Leave for good. At `deadline` (boottime seconds) what still runs is cancelled and given back.

        A second call with a nearer deadline hastens it.
        """
        self.wanted = False
        hastened = self.state is SeatState.DRAINING and deadline < self._drain_deadline
        self._drain_deadline = deadline
        self._advance(SeatEvent.DRAIN)
        if hastened:
            self.say(Drain(deadline))
            self._arm()

    def give_up(self) -> None:
        self._advance(SeatEvent.GIVE_UP)

    def kill(self, reason: str, *, from_outside: bool = False) -> None:
        """`from_outside`: for a cause outside the calls that still run, so that their attempts are given back."""
        if self.kill_reason is None:
            self.kill_reason, self.ended_from_outside = reason, from_outside
        self._advance(SeatEvent.KILL)

    def say(self, message: Message, fd: int | None = None) -> None:
        """Without effect when there is no child to hear it."""
        if self.child is not None:
            self.child.say(message, fd)

    # What the child does.

    def heard(self, message: Message) -> None:
        match message:
            case Ready():
                self.ready_since = self.house.clock()
                self.house.emit(f"{self.noun}.ready", **self.identity, pid=self.pid)
                self._advance(SeatEvent.READY_QUIESCED if self._quiesced else SeatEvent.READY)
            case Drained(unended=unended):
                self._advance(SeatEvent.STUCK if unended else SeatEvent.DRAINED)
            case BootFailed(reason=reason):
                self.boot_failure = message
                self.house.emit(f"{self.noun}.boot-failed", **self.identity, reason=reason)
            case Event(name=name, fields=fields):
                self._relay(name, {**self.identity, **fields})
            case _:
                self.told(message)

    def _relay(self, name: str, fields: Mapping[str, Any]) -> None:
        if name in (outages.FAILED, outages.RECOVERED):
            self.house.outages.heard(self, name, fields)
        else:
            self.house.emit(name, **fields)

    def broke(self, reason: str) -> None:
        """Its end of the channel is gone. A child that is leaving is given the time to do so."""
        child = self.child
        self.house.reactor.call_after(HANG_UP, lambda: self._hang_up(child, reason))

    def exited(self, ending: Ending) -> None:
        """It is reaped, and its process group dead."""
        pid, self._ending, self.child = self.pid, ending, None
        self.house.outages.forget(self)
        self.left_in_order = self.state is SeatState.DRAINING and ending.clean
        if not self.left_in_order:
            self._record_death()
        self.cause = self._cause_of(ending)
        self._report(pid, ending)
        self.ready_since = None
        self._advance(SeatEvent.EXITED if self.wanted else SeatEvent.ENDED)

    # The table at work.

    def _advance(self, event: SeatEvent) -> None:
        before, step = self.state, SEAT_TABLE[self.state, event]
        self.state = step.state
        for action in step.actions:
            self._act(action, event)
        if self.state is not before or step.actions:
            self._arm()
            self._review()

    def _act(self, action: SeatAction, event: SeatEvent) -> None:
        match action:
            case SeatAction.FORK:
                self._fork()
            case SeatAction.ADMIT:
                self.admit()
            case SeatAction.QUIESCE:
                self.say(Quiesce())
            case SeatAction.RESUME:
                self.say(Resume())
            case SeatAction.DRAIN:
                self.say(Drain(self._drain_deadline))
            case SeatAction.KILL:
                self._kill(event)
            case SeatAction.SETTLE:
                self.settle(self._ending)

    def _fork(self) -> None:
        self.kill_reason = self.boot_failure = self.ready_since = self._ending = None
        self.ended_from_outside = self.left_in_order = False
        try:
            self.child = Child.fork(self.house, self, self.errand())
        except (OSError, SpawnError) as error:
            self._record_death()
            facts = {"reason": str(error), "respawn_in_s": self.respawn.delay}
            self.house.emit(f"{self.noun}.spawn-failed", **self.identity, **facts)
            self._advance(SeatEvent.SPAWN_FAILED)
        else:
            self.house.emit(f"{self.noun}.started", **self.identity, pid=self.child.pid)
            self.forked()

    def _kill(self, event: SeatEvent) -> None:
        self.kill_reason = self.kill_reason or _REASONS.get(event, str(event))
        self.ended_from_outside = self.ended_from_outside or event in _FROM_OUTSIDE
        self.house.emit(f"{self.noun}.killed", **self.identity, pid=self.pid, reason=self.kill_reason)
        if self.child is not None:
            self.child.kill()

    def _hang_up(self, child: Child | None, reason: str) -> None:
        if child is not None and self.child is child:
            self.kill(f"its channel broke: {reason}")

    def _record_death(self) -> None:
        self.respawn = self.respawn.after_death(now=self.house.clock(), ready_since=self.ready_since)

    def _cause_of(self, ending: Ending) -> str:
        """An out-of-memory kill is a SIGKILL like any other; only the count of the cgroup tells."""
        out_of_memory = self.house.oom_kills.rose()
        if ending.signal == signal.SIGKILL and self.kill_reason is None and out_of_memory:
            return f"{ending}, likely out of memory: the cgroup counts a kill"
        return self.kill_reason or str(ending)

    def _report(self, pid: int | None, ending: Ending) -> None:
        facts = {**self.identity, "pid": pid, "code": ending.code, "signal": ending.signal, "cause": self.cause}
        if self.left_in_order or not self.wanted:
            self.house.emit(f"{self.noun}.exited", **facts)
            return
        self.house.emit(f"{self.noun}.died", **facts, respawn_in_s=self.respawn.delay)
        if self.flapping:
            self.house.emit(f"{self.noun}.flapping", **self.identity, deaths=self.respawn.failures)

    def _arm(self) -> None:
        """Each state has at most one deadline."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        now, settings = self.house.clock(), self.house.settings
        match self.state:
            case SeatState.STARTING:
                self._alarm(now + settings.boot_timeout, SeatEvent.BOOT_TIMEOUT)
            case SeatState.DRAINING:
                self._alarm(self._drain_deadline + KILL_AFTER, SeatEvent.DRAIN_TIMEOUT)
            case SeatState.BACKOFF:
                self._timer = self.house.reactor.call_at(now + self.respawn.delay, self.due)

    def _alarm(self, at: float, event: SeatEvent) -> None:
        self._timer = self.house.reactor.call_at(at, lambda: self._advance(event))
