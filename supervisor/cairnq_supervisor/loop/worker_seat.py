"""Number n of a queue's worker processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from cairnq.run.engine import Engine
from cairnq_supervisor.loop.child import Errand
from cairnq_supervisor.loop.house import House
from cairnq_supervisor.loop.incarnation import Incarnation
from cairnq_supervisor.loop.reactor import Timer
from cairnq_supervisor.loop.seat import Seat
from cairnq_supervisor.pure import waking
from cairnq_supervisor.pure.ledger import Ledger, Place
from cairnq_supervisor.pure.lifecycle import SeatEvent, SeatState
from cairnq_supervisor.pure.messages import (
    Admit,
    BytesFreed,
    Exhausting,
    Holding,
    LeasesChanged,
    Message,
    Overrun,
    Returned,
    Tallied,
    Uses,
    Watched,
)
from cairnq_supervisor.pure.policy import Respawn
from cairnq_supervisor.pure.settings import QueueSettings
from cairnq_supervisor.roles.application import registry_for
from cairnq_supervisor.roles.plan import WorkerPlan, engine_options
from cairnq_supervisor.roles.worker import run_worker
from cairnq_supervisor.system.processes import Ending
from cairnq_supervisor.system.wall import wall_offset

UNKNOWN_CAPACITY = 8192
"""Leases in the table of a worker whose application only the child imports. Untouched memory costs nothing."""

_SUSPECTS = Respawn(ceiling=1.0)
"""A quarantine is there for processes to die in, and each death spends an attempt: the next suspect need not wait."""

VOUCHED = frozenset({SeatState.READY, SeatState.QUIESCING, SeatState.DRAINING})
"""The states in which the supervisor vouches for what a worker holds."""


class Steward(Protocol):
    """Who looks after a worker's leases and its colleagues."""

    def line_up(self, seat: WorkerSeat) -> None: ...
    def enter(self, queue: str) -> tuple[Ledger, Place]: ...
    def leave(self, place: Place) -> None: ...
    def bytes_freed(self, by: Place) -> None: ...
    def lend(self, incarnation: Incarnation) -> None: ...
    def bury(self, seat: WorkerSeat, incarnation: Incarnation, ending: Ending) -> None: ...
    def beats_needed(self, incarnation: Incarnation) -> None: ...
    def welcome(self, seat: WorkerSeat) -> None: ...
    def retire(self, incarnation: Incarnation) -> None: ...
    def returned(self, incarnation: Incarnation, message: Returned) -> None: ...
    def pass_on(self, queue: str) -> None: ...


class WorkerSeat(Seat):
    """Each child of this seat is an incarnation with a `worker_id` and a lease table of its own."""

    noun = "worker"

    def __init__(
        self,
        house: House,
        queue: QueueSettings,
        slot: int,
        generation: int,
        *,
        steward: Steward,
        review: Callable[[], None],
    ) -> None:
        super().__init__(house, _SUSPECTS if queue.quarantine else Respawn(), review)
        self.queue = queue
        self.number = slot
        self.generation = generation
        self.incarnation: Incarnation | None = None
        self.place: Place | None = None
        """Its child's row in the ledger of payload bytes."""
        self.admitted = False
        self.overrun: tuple[str, ...] = ()
        """Tasks for whose sake the latest child was killed."""
        self.uses: dict[str, int] = {}
        """Resources of its handlers, and how much of each this host has, as its child said."""
        self.told_block: float | None = None
        """The last progress of the block of its child's loop that was reported."""
        self.retirement: Timer | None = None
        """When its child has reached its age."""
        self.tallied: dict[str, Any] = {}
        """What its child last said about its tasks, as it was encoded."""

        self._steward = steward

    @property
    def identity(self) -> Mapping[str, Any]:
        worker_id = self.incarnation.worker_id if self.incarnation is not None else None
        return {**self.name, "worker_id": worker_id}

    @property
    def name(self) -> Mapping[str, Any]:
        return {"queue": self.queue.name, "slot": self.slot}

    @property
    def slot(self) -> int | str:
        """Its number among the queue's workers; among those that run suspects, `s` and the number."""
        return f"s{self.number}" if self.queue.quarantine else self.number

    @property
    def flapping(self) -> bool:
        """A quarantine is there for processes to die in."""
        return super().flapping and not self.queue.quarantine

    @property
    def line(self) -> str:
        """What its tasks wait in. Suspects do not wait in line with the others for a resource."""
        return f"{self.queue.name} (suspects)" if self.queue.quarantine else self.queue.name

    @property
    def bound_by_host(self) -> bool:
        """Its payloads stand under a ceiling together with those of other queues."""
        return self.house.settings.max_in_flight_bytes is not None

    @property
    def vouched(self) -> bool:
        return self.state in VOUCHED

    @property
    def is_due(self) -> bool:
        """It waits for its turn to be filled."""
        return self.state is SeatState.BACKOFF and self.wanted

    @property
    def room(self) -> int:
        """Calls that this worker could still take, as its own gauges say; none while its loop does not turn."""
        if self.state is not SeatState.READY or self.incarnation is None:
            return 0
        if waking.is_silent(self.incarnation.table, self.house.clock()):
            return 0
        return self.queue.concurrency - self.incarnation.table.in_flight_calls

    def start(self) -> None:
        self._advance(SeatEvent.DUE)

    def due(self) -> None:
        self._steward.line_up(self)

    def errand(self) -> Errand:
        house = self.house
        rung_for = None if self.queue.quarantine else self.queue.name  # nothing notifies of suspects
        incarnation = Incarnation(self._capacity(), self.queue.lease, house.descriptors, rung_for=rung_for)
        self.incarnation, self.admitted, self.overrun, self.uses = incarnation, False, (), {}
        self.told_block = None
        ledger, self.place = self._steward.enter(self.queue.name)
        plan = WorkerPlan(
            settings=house.settings,
            queue=self.queue,
            slot=self.slot,
            worker_id=incarnation.worker_id,
            registry=house.registry,
            installation=house.installation,
            stale_modules=house.stale_modules,
            capacity=incarnation.capacity,
            memory=incarnation.memory,
            ledger=ledger,
            place=self.place,
            stacks=incarnation.stacks,
            bell=incarnation.bell,
            unit_locks=house.unit_locks,
            wall_offset=wall_offset(),
        )
        return Errand(lambda channel: run_worker(plan, channel), plan.title)

    def forked(self) -> None:
        assert self.incarnation is not None
        self.incarnation.hide_from_siblings()
        self._steward.lend(self.incarnation)

    def kill_for_overrun(self, task_ids: tuple[str, ...]) -> None:
        """The worker did not end these calls at max_run. Their neighbours are not to blame."""
        self.overrun = task_ids
        self.kill(f"{len(task_ids)} call(s) outran max_run and were not ended", from_outside=True)

    def drain(self, deadline: float) -> None:
        super().drain(deadline)
        if self.incarnation is not None:
            self._steward.retire(self.incarnation)

    def admit(self) -> None:
        self.admitted = True
        self.say(Admit())
        self._steward.welcome(self)

    def watch(self, *, watched: bool) -> None:
        """Nobody finds suspects for those that run them."""
        if self.admitted and not self.queue.quarantine:
            self.say(Watched(watched))

    def leases_changed(self) -> None:
        self.say(LeasesChanged())

    def told(self, message: Message) -> None:
        match message:
            case Holding() if self.incarnation is not None:
                self._steward.beats_needed(self.incarnation)
            case Overrun():
                self.kill("a call outran max_run and does not end", from_outside=True)
            case BytesFreed() if self.place is not None:
                self._steward.bytes_freed(self.place)
            case Exhausting():
                self._steward.pass_on(self.queue.name)
            case Uses(amounts=amounts):
                self.uses = amounts
            case Returned() if self.incarnation is not None:
                self._steward.returned(self.incarnation, message)
            case Tallied(names=names):
                self.tallied = names

    def settle(self, ending: Ending | None) -> None:
        if self.retirement is not None:
            self.retirement.cancel()
            self.retirement = None
        if self.place is not None:
            place, self.place = self.place, None
            self._steward.leave(place)
        incarnation, self.incarnation = self.incarnation, None
        if incarnation is None:
            return
        if ending is None:
            incarnation.close()
        else:
            self._steward.bury(self, incarnation, ending)

    def _capacity(self) -> int:
        registry = self.house.registry
        if registry is None:
            return UNKNOWN_CAPACITY
        options = engine_options(self.house.settings, self.queue)
        return Engine.table_capacity(registry_for(registry, self.queue), options)
