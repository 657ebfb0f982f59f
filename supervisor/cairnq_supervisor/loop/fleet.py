"""All seats of the host, and what they have to do with each other: leases beaten by the keeper, wake-ups, the dead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from cairnq_supervisor.loop.house import House
from cairnq_supervisor.loop.incarnation import Incarnation
from cairnq_supervisor.loop.keeper_seat import Duty, KeeperSeat
from cairnq_supervisor.loop.nursery import Nursery
from cairnq_supervisor.loop.payloads import Payloads
from cairnq_supervisor.loop.quarantine import Quarantine
from cairnq_supervisor.loop.reactor import Timer
from cairnq_supervisor.loop.resources import Resources
from cairnq_supervisor.loop.roster import Roster
from cairnq_supervisor.loop.sizer import Sizer
from cairnq_supervisor.loop.warden import Warden
from cairnq_supervisor.loop.worker_seat import WorkerSeat
from cairnq_supervisor.pure import waking
from cairnq_supervisor.pure.keeper_messages import Policy, Settle
from cairnq_supervisor.pure.ledger import Ledger, Place
from cairnq_supervisor.pure.lifecycle import SeatState
from cairnq_supervisor.pure.messages import Returned
from cairnq_supervisor.pure.tally import Tally
from cairnq_supervisor.system.cores import granted_cores
from cairnq_supervisor.system.processes import Ending

BEATS_PER_LEASE = 3
BOOTS_PER_CORE = 2
"""Workers that boot beside each other: an import computes, a connection waits."""

LAST_SWEEP = 1.0
"""Seconds after a death for which a drain waits with its sweeps."""

TOTALS = ("claimed", "succeeded", "failed", "released")


class Fleet:
    """`review` is called after every change that may matter to the life of the whole."""

    def __init__(self, house: House, review: Callable[[], None]) -> None:
        self._house = house
        self._beat_timer: Timer | None = None
        self._beats_needed_until = 0.0
        self.keeper = KeeperSeat(house, self, review)
        self._review = review
        self.roster = Roster(house, lambda *place: WorkerSeat(*place, steward=self, review=self._changed))
        self.nursery = Nursery(house.reactor, house.clock, most=BOOTS_PER_CORE * granted_cores())
        self.sizer = Sizer(house, self.roster)
        self._quarantine = Quarantine(house, self.roster)
        self.payloads = Payloads(lambda: self.workers)
        self.resources = Resources(lambda: self.workers, house.clock)
        self.warden = Warden(house, self.roster.replace)
        self.past: Counter[str] = Counter()
        """Totals of the workers that are gone."""

        self._past_tallies: dict[str, dict[str, Any]] = {}
        """By queue, of the workers that are gone, encoded: the gateway does the sums."""

    def start(self) -> None:
        """The keeper first, so that it is there before the first lease."""
        self.keeper.start()
        self.roster.open()

    # What the supervisor asks.

    @property
    def workers(self) -> list[WorkerSeat]:
        return self.roster.seats

    @property
    def all_ready(self) -> bool:
        at_work = (SeatState.READY, SeatState.QUIESCING)
        return self.keeper.state is SeatState.READY and all(worker.state in at_work for worker in self._usual)

    @property
    def hopeless(self) -> bool:
        """Every worker seat failed to become ready, too often and from the beginning."""
        usual = self._usual
        return bool(usual) and all(worker.respawn.hopeless and worker.ready_since is None for worker in usual)

    @property
    def refusal(self) -> int | None:
        """The exit code that a failed boot calls for while the first generation starts."""
        failures = (worker.boot_failure for worker in self._usual if not worker.respawn.ever_ready)
        return next((failure.code for failure in failures if failure is not None), None)

    @property
    def workers_gone(self) -> bool:
        return not any(worker.live for worker in self.workers)

    def tallies(self) -> list[tuple[str, dict[str, Any]]]:
        """Queue and encoded tally, of each worker and of those that are gone: nothing is added up here."""
        return [*self._past_tallies.items(), *((seat.queue.name, seat.tallied) for seat in self.workers)]

    def open_duties(self, now: float) -> list[Duty]:
        """What a drain has to wait for: tables not settled, and the last sweep for what they did not know."""
        return [
            duty for duty in self.keeper.duties.values() if not duty.settled or now - duty.message.since < LAST_SWEEP
        ]

    def renew(self, house: House) -> None:
        """Another generation: by and by every worker is replaced by one of it. The keeper stays."""
        self._house = self.keeper.house = house
        self.roster.renew(house)
        self._size_anew()
        self._quarantine = Quarantine(house, self.roster)
        self._govern()
        if self._beat_timer is not None:  # the next beat was planned for the leases of before
            self._beat_timer.cancel()
            self._beat_timer = house.reactor.call_after(0.0, self._beat_now)

    def renewed(self) -> None:
        """Every place is taken, by the new generation or, where it does not stand up, by the one before."""
        if self.roster.outdated:
            self._size_anew()
        self._govern()

    # What a worker's seat asks (Steward).

    def line_up(self, seat: WorkerSeat) -> None:
        self.nursery.line_up(seat)

    def enter(self, queue: str) -> tuple[Ledger, Place]:
        return self.payloads.ledger, self.payloads.enter(queue)

    def leave(self, place: Place) -> None:
        self.payloads.leave(place)

    def bytes_freed(self, by: Place) -> None:
        self.payloads.freed(by)

    def lend(self, incarnation: Incarnation) -> None:
        self.keeper.lend(incarnation)

    def bury(self, seat: WorkerSeat, incarnation: Incarnation, ending: Ending) -> None:
        """One that left in order, or never was let in, left nothing; anything else is the keeper's to settle."""
        self.resources.bury(incarnation.worker_id)
        if self.keeper.listening:  # it looks every few seconds: what this worker saw of the database is over
            self._house.outages.answered()
        self.past.update({name: getattr(incarnation.table, name) for name in TOTALS})
        past = Tally.decoded(self._past_tallies.get(seat.queue.name, {}))
        past.add(Tally.decoded(seat.tallied))
        self._past_tallies[seat.queue.name], seat.tallied = past.encoded(), {}
        if incarnation.holds_nothing and (seat.left_in_order or not seat.admitted):
            self.keeper.take_back(incarnation)
            return
        identity = {**seat.name, "worker_id": incarnation.worker_id}
        self.keeper.charge(Duty(self._duty(seat, incarnation, ending), incarnation, identity))

    def beats_needed(self, incarnation: Incarnation) -> None:
        """It holds something. Beats stop when nobody does, and none may without a word: an idle host sleeps."""
        until = self._house.clock() + incarnation.lease / BEATS_PER_LEASE
        self._beats_needed_until = max(self._beats_needed_until, until)
        if self._beat_timer is None:
            self._beat_later()

    def welcome(self, seat: WorkerSeat) -> None:
        seat.watch(watched=self.keeper.listening)
        self.warden.welcome(seat)
        self.resources.welcome(seat)

    def retire(self, incarnation: Incarnation) -> None:
        self.resources.retire(incarnation.worker_id)

    def returned(self, incarnation: Incarnation, message: Returned) -> None:
        self.resources.returned(incarnation.worker_id, message)

    def pass_on(self, queue: str) -> None:
        """Wake one more: the one that was woken has its hands full."""
        at_work = (seat.incarnation for seat in self.roster.of(queue) if seat.state is SeatState.READY)
        best = waking.best((one for one in at_work if one is not None), lambda one: one.table, self._house.clock())
        if best is not None:
            best.bell.ring()

    # What the keeper's seat tells (Listener).

    def listens(self, *, delivers: bool) -> None:
        for worker in self.workers:
            worker.watch(watched=delivers)

    def leases_changed(self, worker_ids: tuple[str, ...]) -> None:
        for worker in self.workers:
            if worker.incarnation is not None and worker.incarnation.worker_id in worker_ids:
                worker.leases_changed()

    def sampled(self) -> None:
        """What is due has its suspects among it; they are nothing that more of the usual workers could do."""
        counted = self.keeper.backlog.items()
        suspects = {queue: numbers[3] or 0 for queue, numbers in counted}
        due = {queue: max(0, (numbers[0] or 0) - suspects[queue]) for queue, numbers in counted}
        self.sizer.sampled(due)
        self._quarantine.sampled(suspects)
        lines = {seat.line: suspects.get(seat.queue.name, 0) for seat in self.workers if seat.queue.quarantine}
        self.resources.sampled({**due, **lines})

    def order_beat(self) -> None:
        """Vouch for every worker whose process is alive, so that the keeper renews what they hold."""
        vouched = tuple(
            worker.incarnation.worker_id for worker in self.workers if worker.vouched and worker.incarnation is not None
        )
        if vouched:
            self.keeper.order(vouched)

    def _size_anew(self) -> None:
        self.sizer.retire()
        self.sizer = Sizer(self._house, self.roster)

    def _govern(self) -> None:
        queues = tuple(queue.name for queue in self.roster.queues)
        self.keeper.govern(Policy(queues, dict(self._house.settings.retention), self._shortest_lease))

    def _changed(self) -> None:
        self.nursery.go_on()
        self._review()

    @property
    def _usual(self) -> list[WorkerSeat]:
        """The workers that the configuration asks for."""
        return [worker for worker in self.workers if not worker.queue.quarantine]

    @property
    def _shortest_lease(self) -> float:
        """After a reload, workers of before go on with theirs."""
        leases = [seat.incarnation.lease for seat in self.workers if seat.incarnation is not None]
        return min([*(queue.lease for queue in self.roster.queues), *leases])

    @property
    def _beat_interval(self) -> float:
        return self._shortest_lease / BEATS_PER_LEASE

    def _beat_later(self) -> None:
        self._beat_timer = self._house.reactor.call_after(self._beat_interval, self._beat_now)

    def _beat_now(self) -> None:
        self._beat_timer = None
        quiet = self._house.clock() >= self._beats_needed_until
        if quiet and not any(worker.incarnation and worker.incarnation.needs_beats for worker in self.workers):
            return
        for worker in list(self.workers):
            self.warden.look(worker, interval=self._beat_interval)
        self.keeper.check(interval=self._beat_interval)
        self.warden.look_at_memory(self.workers)
        self.order_beat()
        self._beat_later()

    def _duty(self, seat: WorkerSeat, incarnation: Incarnation, ending: Ending) -> Settle:
        """For a lease, also of one that was to leave: its last claim may take effect long after it was killed."""
        queue = seat.queue
        return Settle(
            worker_id=incarnation.worker_id,
            since=self._house.clock(),
            horizon=queue.lease,
            lease=queue.lease,
            reason=f"worker {queue.name}/{seat.slot} died: {seat.cause}",
            details={"exit_code": ending.code, "signal": ending.signal},
            released=seat.ended_from_outside,
            overrun=seat.overrun,
            max_run_ms=round((queue.max_run or 0) * 1000),
            retry_backoff_ms=round(queue.retry_backoff * 1000),
            retry_backoff_max_ms=round(queue.retry_backoff_max * 1000),
        )
