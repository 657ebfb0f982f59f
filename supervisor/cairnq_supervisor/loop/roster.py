"""Which worker seats there are: hired at the start, added and taken away by scaling, replaced one at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cairnq_supervisor.loop.house import House
from cairnq_supervisor.loop.posts import Posts
from cairnq_supervisor.loop.worker_seat import WorkerSeat
from cairnq_supervisor.pure.lifecycle import SeatState
from cairnq_supervisor.pure.settings import QueueSettings

MakeSeat = Callable[[House, QueueSettings, int, int], WorkerSeat]
"""`make(house, queue, slot, generation)`."""

_AT_WORK = frozenset({SeatState.READY, SeatState.QUIESCING})


@dataclass(slots=True)
class _Replacement:
    """A successor for one seat."""

    old: WorkerSeat
    new: WorkerSeat | None = None

    @property
    def place(self) -> tuple[str, int]:
        return self.old.queue.name, self.old.number


class Roster:
    """Call `tidy` after every change of a seat. `house.settings` says what there is to begin with."""

    def __init__(self, house: House, make_seat: MakeSeat) -> None:
        self._house = house
        self._make_seat = make_seat
        self._replacements: deque[_Replacement] = deque()
        self._current: _Replacement | None = None
        self._paused: set[str] = set()
        self._quiesced = False
        self.generation = 1
        self._posts = Posts(house, self.generation)
        self.seats: list[WorkerSeat] = []

    def open(self) -> None:
        """Fill every seat that the configuration names, the first ones of every queue first."""
        for slot in range(max(queue.processes for queue in self.queues)):
            for queue in self.queues:
                if slot < queue.processes:
                    self.hire(queue, slot)

    @property
    def queues(self) -> tuple[QueueSettings, ...]:
        return self._posts.queues

    def wanted(self, queue: str) -> int:
        """Processes that this queue is to have."""
        return self._posts.want(queue)

    @property
    def oldest(self) -> int:
        """The oldest generation of which a usual worker is to stay."""
        return min((seat.generation for seat in self._usual), default=self.generation)

    @property
    def outdated(self) -> tuple[str, ...]:
        """Queues that have workers of an older generation than the last."""
        return tuple(dict.fromkeys(seat.queue.name for seat in self._usual if seat.generation < self.generation))

    def is_paused(self, queue: str) -> bool:
        return self._quiesced or queue in self._paused

    def of(self, queue: str) -> Iterator[WorkerSeat]:
        """The usual workers of this queue."""
        return (seat for seat in self.seats if seat.queue.name == queue and not seat.queue.quarantine)

    def quarantine(self, queue: str) -> Iterator[WorkerSeat]:
        """The workers that run its suspects, but for those on their way out."""
        return (seat for seat in self.seats if seat.queue.name == queue and seat.queue.quarantine and seat.wanted)

    # Claiming or not.

    def quiesce(self) -> None:
        self._quiesced = True
        self._tell_paused()

    def resume(self) -> None:
        self._quiesced = False
        self._tell_paused()

    def pause(self, queue: str, *, paused: bool) -> None:
        (self._paused.add if paused else self._paused.discard)(queue)
        self._tell_paused()

    def _tell_paused(self) -> None:
        for seat in self.seats:
            if self.is_paused(seat.queue.name):
                seat.quiesce()
            else:
                seat.resume()

    # More and fewer.

    def scale(self, queue: QueueSettings, processes: int) -> None:
        """Fill new seats with the lowest free numbers; those with the highest leave first."""
        self._posts.of(queue.name).want = processes
        places = self._places(queue.name)
        for number in sorted(places)[processes:]:
            self._vacate(queue.name, number)
        free = (slot for slot in range(processes) if slot not in places)
        for _ in range(processes - len(places)):
            self.hire(queue, next(free))

    def hire(self, queue: QueueSettings, slot: int) -> WorkerSeat:
        post = self._posts.of(queue.name)
        seat = self._make_seat(post.house, queue, slot, post.generation)
        self.seats.append(seat)
        if self.is_paused(queue.name):
            seat.quiesce()
        seat.start()
        return seat

    def dismiss(self, seat: WorkerSeat) -> None:
        """It leaves in its own time, and for good."""
        seat.drain(self._deadline())

    def scale_all(self, step: int) -> None:
        """`step` processes more on every queue; the last one stays."""
        for queue in self.queues:
            processes = self.wanted(queue.name) + step
            if processes >= 1:
                self.scale(queue, processes)
                self._house.emit("queue.scaled", queue=queue.name, processes=processes)

    def drain(self, deadline: float) -> None:
        """Everybody leaves, by one deadline."""
        self._replacements.clear()
        self._current = None
        for seat in self.seats:
            seat.drain(deadline)

    def give_up(self) -> None:
        for seat in self.seats:
            seat.give_up()

    # Successors.

    def replace(self, seat: WorkerSeat, reason: str) -> None:
        """A new one in its place, once it is ready; where a resource is at stake, after the old one has left.

        One that runs suspects gets none: another is hired if more of them wait.
        """
        known = [self._current, *self._replacements]
        if seat.wanted and not any(one is not None and one.old is seat for one in known):
            self._house.emit("worker.replacing", **seat.identity, pid=seat.pid, reason=reason)
            if seat.queue.quarantine:
                self.dismiss(seat)
            else:
                self._replacements.append(_Replacement(seat))
                self.tidy()

    def renew(self, house: House) -> None:
        """Another configuration: queues that are gone leave, new ones come, and every other seat gets a successor."""
        outdated = self.outdated
        self.generation += 1
        self._house = house
        self._posts.renew(house, self.generation, outdated=outdated)
        self._break_off()
        for seat in list(self.seats):
            if (seat.queue.name not in self._posts or seat.queue.quarantine) and seat.wanted:
                self.dismiss(seat)
        for queue in self.queues:
            places = self._places(queue.name)
            for number in sorted(places)[: queue.processes]:
                self._replacements.extend(_Replacement(seat) for seat in places[number])
            self.scale(queue, queue.processes)
        self.tidy()

    @property
    def replacing(self) -> bool:
        return self._current is not None or bool(self._replacements)

    def tidy(self) -> None:
        """Bring the replacement that is under way one step further, and forget seats that nobody needs."""
        while self._step():
            pass
        gone = [seat for seat in self.seats if seat.state is SeatState.STOPPED and not seat.wanted]
        self.seats = [seat for seat in self.seats if seat not in gone]

    def _step(self) -> bool:
        """Whether something changed."""
        if self._current is None:
            if not self._replacements:
                return False
            self._current = self._replacements.popleft()
        one = self._current
        if one.new is None:
            return self._begin(one)
        if one.new.state in _AT_WORK and one.old.wanted:
            self.dismiss(one.old)
            return True
        failed = one.new.respawn.hopeless and not one.new.live
        if failed and (one.old.wanted or one.old.generation < one.new.generation):
            self._abandon(one.old, one.new)
            return True
        if failed or not one.new.wanted or (one.new.state in _AT_WORK and one.old.state is SeatState.STOPPED):
            self._current = None
            return True
        return False

    def _begin(self, one: _Replacement) -> bool:
        """The successor first, unless two must not be there at the same time, or there is nobody to wait for."""
        post = self._posts.of(one.old.queue.name)
        first_out = not one.old.live or post.queue.name in post.house.resource_queues
        if first_out and one.old.wanted:
            self.dismiss(one.old)
            return True
        if first_out and one.old.state is not SeatState.STOPPED:
            return False
        one.new = self.hire(post.queue, one.old.number)
        return True

    def _abandon(self, old: WorkerSeat, new: WorkerSeat) -> None:
        """The old one stays. What cannot start in one place would not start in the others."""
        self._house.emit("worker.replacement-failed", **old.identity, reason="its successor does not become ready")
        self.dismiss(new)
        self._replacements.clear()
        self._current = None
        if old.generation < new.generation:
            for queue in {old.queue.name, *self.outdated}:
                self._fall_back(queue)

    def _fall_back(self, queue: str) -> None:
        """As it was before a generation that does not stand up, but for those of it that do."""
        post = self._posts.fall_back(queue)
        if post is None:
            return
        for seat in [*self.of(queue), *self.quarantine(queue)]:
            if seat.generation > post.generation and seat.state not in _AT_WORK and seat.wanted:
                self.dismiss(seat)
        self.scale(post.queue, post.want)

    def _break_off(self) -> None:
        """Successors of the last generation are not waited for: they may be what this one is to mend."""
        self._replacements.clear()
        one, self._current = self._current, None
        if one is None:
            return
        if one.new is None:
            if one.old.queue.name in self._posts:  # the old one is leaving: its successor will be of this generation
                self._current = one
        elif one.old.wanted:
            self.dismiss(one.old if one.new.state in _AT_WORK else one.new)

    def _vacate(self, queue: str, number: int) -> None:
        """Nobody stays in this place, and nobody comes."""
        for seat in self._places(queue)[number]:
            self.dismiss(seat)
        self._replacements = deque(one for one in self._replacements if one.place != (queue, number))
        if self._current is not None and self._current.place == (queue, number):
            self._current = None

    def _places(self, queue: str) -> dict[int, list[WorkerSeat]]:
        """Who is to stay among the usual workers, by number.

        Two are in the place of one that waits for its successor, none is where the successor comes only after it.
        """
        places: dict[int, list[WorkerSeat]] = {}
        for seat in self.of(queue):
            if seat.wanted:
                places.setdefault(seat.number, []).append(seat)
        if self._current is not None and self._current.new is None and self._current.place[0] == queue:
            places.setdefault(self._current.old.number, [])
        return places

    @property
    def _usual(self) -> Iterator[WorkerSeat]:
        return (seat for seat in self.seats if seat.wanted and not seat.queue.quarantine)

    def _deadline(self) -> float:
        return self._house.clock() + self._house.settings.drain_timeout
