"""The keeper's seat, and the books that let a reborn keeper take over: which tables are lent, which duties are open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from cairnq_supervisor.loop.child import Errand
from cairnq_supervisor.loop.house import House
from cairnq_supervisor.loop.incarnation import Incarnation
from cairnq_supervisor.loop.reactor import Timer
from cairnq_supervisor.loop.seat import Seat
from cairnq_supervisor.pure.keeper_messages import (
    Beat,
    Beaten,
    DutyDone,
    Listening,
    Ping,
    Policy,
    Pong,
    Sampled,
    Settle,
    Settled,
    TakeBack,
    Unlent,
)
from cairnq_supervisor.pure.lifecycle import SeatState
from cairnq_supervisor.pure.messages import Message
from cairnq_supervisor.pure.policy import Respawn
from cairnq_supervisor.roles.keeper import KeeperPlan, run_keeper
from cairnq_supervisor.system.processes import Ending

_RESPAWN_PART = 1 / 6
"""The longest pause between two keepers, as a part of the shortest lease."""

_ANSWER_WITHIN = 1.0
"""Seconds that a keeper has at least to answer, however short the leases are: a busy host is slow."""

_ASK_EVERY = 5.0
"""Seconds after which it is asked for a sign of life though nobody holds anything: workers rest on its word."""

_LEND_AGAIN = 1.0
"""Seconds after which a worker's table is lent again that did not arrive."""

_ANSWERED = (Sampled, Beaten, Settled, DutyDone)
"""Of what the database had said a moment before."""

_COUNTED = ("requeued", "failed", "released", "suspects", "canceled", "crashed")


class Listener(Protocol):
    """Who hears what the keeper found."""

    def listens(self, *, delivers: bool) -> None: ...
    def leases_changed(self, worker_ids: tuple[str, ...]) -> None: ...
    def order_beat(self) -> None: ...
    def beats_needed(self, incarnation: Incarnation) -> None: ...
    def sampled(self) -> None: ...


@dataclass(slots=True)
class Duty:
    """What is owed to a dead worker. The incarnation's table is evidence until the duty is done."""

    message: Settle
    incarnation: Incarnation
    identity: Mapping[str, Any]
    settled: bool = False


class KeeperSeat(Seat):
    """Everything that it was told is told again to its successor."""

    noun = "keeper"

    def __init__(self, house: House, listener: Listener, review: Callable[[], None]) -> None:
        super().__init__(house, _patient(Respawn(), house.settings.shortest_lease), review)
        self.listening = False
        self.duties: dict[str, Duty] = {}
        self.last_beat: Beaten | None = None
        self.backlog: Mapping[str, Sequence[int | None]] = {}
        """By queue: due, running, ms for which the oldest due task had waited, suspects. No entry: nothing waits."""

        self.answered_at = 0.0
        """When it last answered a `Ping`."""

        self._asked_at: float | None = None
        self._ask_timer: Timer | None = None

        self._listener = listener
        self._policy: Policy | None = None
        self._lent: dict[str, Incarnation] = {}
        self._unlent: set[str] = set()
        """Workers whose table or bell is to be lent again."""

    @property
    def identity(self) -> Mapping[str, Any]:
        return {}

    def errand(self) -> Errand:
        plan = KeeperPlan(self.house.settings, self.house.installation)
        return Errand(lambda channel: run_keeper(plan, channel), "cairnq: keeper")

    def forked(self) -> None:
        """Said before it listens: it finds all this in its channel when it boots."""
        self._asked_at = None
        if self._policy is not None:
            self.say(self._policy)
        for incarnation in self._lent.values():
            self._say_lent(incarnation)
        for duty in self.duties.values():
            self.say(*duty.incarnation.lend())
            self.say(duty.message)
        self._listener.order_beat()

    def admit(self) -> None:
        """It works from its first moment; there is nothing to admit it to. From now on it has to answer."""
        if self._ask_timer is not None:
            self._ask_timer.cancel()
        self._ask_later()

    def settle(self, ending: Ending | None) -> None:  # noqa: ARG002 - however it ended
        """It held nothing but what the books say."""
        self._set_listening(False)

    def check(self, *, interval: float) -> None:
        """At each beat, and seldom without: one that does not turn renews nothing, and its successor still has time to.

        Workers look for themselves from then on, however long it takes to die.
        """
        now = self.house.clock()
        if self.state is not SeatState.READY:
            return
        if self._asked_at is not None and self.answered_at < self._asked_at:
            if now - self._asked_at >= max(interval, _ANSWER_WITHIN):
                self._set_listening(False)
                self.kill("it does not answer")
            return
        self._asked_at = now
        self.say(Ping())

    def _ask_later(self) -> None:
        self._ask_timer = self.house.reactor.call_after(_ASK_EVERY, self._ask)

    def _ask(self) -> None:
        if self.state is SeatState.READY:
            self.check(interval=_ASK_EVERY)
            self._ask_later()

    def govern(self, policy: Policy) -> None:
        """After a reload: what it was born with holds no longer."""
        self._policy = policy
        self.respawn = _patient(self.respawn, policy.lease)
        self.say(policy)

    def lend(self, incarnation: Incarnation) -> None:
        self._lent[incarnation.worker_id] = incarnation
        self._say_lent(incarnation)

    def _lent_in_vain(self, incarnation: Incarnation, *, is_kept: bool) -> None:
        """A worker whose table the keeper lacks claims nothing: its next beat, which is the first, lets it go on."""
        if not is_kept:
            incarnation.table.run_out(self.house.clock())
            self._listener.beats_needed(incarnation)
        if not self._unlent:
            self.house.reactor.call_after(_LEND_AGAIN, self._lend_again)
        self._unlent.add(incarnation.worker_id)

    def _lend_again(self) -> None:
        unlent, self._unlent = self._unlent, set()
        for worker_id in unlent & self._lent.keys():
            self._say_lent(self._lent[worker_id])
        self._listener.order_beat()

    def _say_lent(self, incarnation: Incarnation) -> None:
        self.say(*incarnation.lend())
        bell = incarnation.lend_bell()
        if bell is not None:
            self.say(*bell)

    def take_back(self, incarnation: Incarnation) -> None:
        """This worker left in order and holds nothing."""
        del self._lent[incarnation.worker_id]
        self.say(TakeBack(incarnation.worker_id))
        incarnation.close()

    def charge(self, duty: Duty) -> None:
        """This worker is dead: settle what it held, whoever is keeper when it gets done."""
        del self._lent[duty.incarnation.worker_id]
        self.duties[duty.incarnation.worker_id] = duty
        self.say(duty.message)

    def order(self, worker_ids: tuple[str, ...]) -> None:
        self.say(Beat(self.house.clock(), worker_ids))

    def told(self, message: Message) -> None:
        if isinstance(message, _ANSWERED) or message == Listening(delivers=True):
            self.house.outages.answered()
        match message:
            case Sampled(queues=queues):
                self.backlog = queues
                self._listener.sampled()
            case Pong():
                self.answered_at = self.house.clock()
            case Listening(delivers=delivers):
                self._listens(delivers)
            case Beaten(changed=changed):
                self.last_beat = message
                self._report_beat(message)
                self._listener.leases_changed(changed)
            case Settled():
                self._settled(message)
            case Unlent(worker_id=worker_id, is_kept=is_kept) if worker_id in self._lent:
                self._lent_in_vain(self._lent[worker_id], is_kept=is_kept)
            case DutyDone(worker_id=worker_id):
                self._discharge(worker_id)

    def _report_beat(self, beaten: Beaten) -> None:
        facts = {"renewed": beaten.renewed, "unsure": beaten.unsure, "lost": beaten.lost}
        self.house.emit("lease.beat", **facts, latency_ms=beaten.latency_ms)

    def _listens(self, delivers: bool) -> None:
        if delivers != self.listening and self.state is not SeatState.DRAINING:
            self.house.emit("keeper.listening" if delivers else "keeper.listen-lost", pid=self.pid)
        self._set_listening(delivers)

    def _set_listening(self, delivers: bool) -> None:
        self.listening = delivers
        self._listener.listens(delivers=delivers)

    def _settled(self, said: Settled) -> None:
        duty = self.duties.get(said.worker_id)
        if duty is None or duty.settled:  # a reborn keeper begins anew, and finds it done
            return
        duty.settled = True
        took_ms = round((self.house.clock() - duty.message.since) * 1000)
        counts = {name: getattr(said, name) for name in _COUNTED}
        self.house.emit("worker.settled", **duty.identity, **counts, took_ms=took_ms)
        self._review()

    def _discharge(self, worker_id: str) -> None:
        duty = self.duties.pop(worker_id, None)
        if duty is not None:
            duty.incarnation.close()
            self.house.emit("worker.forgotten", **duty.identity)
            self._review()


def _patient(respawn: Respawn, lease: float) -> Respawn:
    """The same record of deaths, with the pauses that go with the shortest lease (seconds)."""
    ceiling = lease * _RESPAWN_PART
    return replace(respawn, first=min(0.5, ceiling), ceiling=ceiling)
