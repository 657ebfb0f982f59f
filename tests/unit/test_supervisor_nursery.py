"""Whose turn it is to be filled, told by scripted seats and a clock that the test sets."""

from __future__ import annotations

import pytest

from cairnq_supervisor.loop.nursery import PATIENCE, Nursery
from cairnq_supervisor.loop.reactor import Reactor
from cairnq_supervisor.pure.lifecycle import SeatState


class Clock:
    """Each look at it takes a moment, as with a real one."""

    now = 0.0

    def __call__(self):
        self.now += 1e-6
        return self.now


class Seat:
    def __init__(self, line="default"):
        self.line = line
        self.state = SeatState.BACKOFF

    @property
    def is_due(self):
        return self.state is SeatState.BACKOFF

    def fill(self):
        self.state = SeatState.STARTING


class Room:
    """A nursery for two, its loop, and seats that wait: so many of one line, or those of these lines."""

    def __init__(self, waiting):
        lines = ["default"] * waiting if isinstance(waiting, int) else waiting
        self.clock = Clock()
        self.faults = []
        self.reactor = Reactor(self.clock, self.faults.append)
        self.nursery = Nursery(self.reactor, self.clock, most=2)
        self.seats = [Seat(line) for line in lines]
        for seat in self.seats:
            self.nursery.line_up(seat)

    @property
    def filled(self):
        return [number for number, seat in enumerate(self.seats) if seat.state is not SeatState.BACKOFF]

    def change(self, number, state):
        self.seats[number].state = state
        self.nursery.go_on()

    def turn(self, after=0.0):
        self.clock.now += after
        self.reactor.turn()


@pytest.fixture
def rooms():
    rooms = []

    def make(waiting):
        rooms.append(Room(waiting))
        return rooms[-1]

    yield make
    for room in rooms:
        room.reactor.close()
        assert room.faults == []


@pytest.fixture
def room(rooms):
    return rooms(5)


def test_one_seat_is_filled_in_each_turn_and_no_more_than_may_boot_beside_each_other(room):
    assert room.filled == []
    room.turn()
    assert room.filled == [0]
    room.turn()
    assert room.filled == [0, 1]
    room.turn()
    room.change(0, SeatState.READY)
    room.turn()
    assert room.filled == [0, 1, 2]


def test_a_death_makes_room_as_well_and_the_dead_one_goes_to_the_end_of_the_line(room):
    room.turn()
    room.turn()
    room.change(1, SeatState.BACKOFF)
    room.nursery.line_up(room.seats[1])
    for number in (2, 3, 4, 1):
        room.turn()
        assert room.seats[number].state is SeatState.STARTING
        room.change(number, SeatState.READY)


def test_seats_that_are_not_due_any_more_lose_their_turn(room):
    for number in (0, 1, 3):
        room.change(number, SeatState.STOPPED)
    room.turn()
    room.turn()
    assert [seat.state for seat in (room.seats[2], room.seats[4])] == [SeatState.STARTING] * 2


def test_one_that_hangs_at_its_start_holds_up_nobody_for_long(room):
    room.turn()
    room.turn()
    room.turn(after=PATIENCE)
    room.turn()
    assert room.filled == [0, 1, 2, 3]


def test_a_queue_whose_boots_hang_does_not_keep_another_waiting(rooms):
    room = rooms(["slow"] * 5)
    for _ in range(2):
        room.turn()
    room.seats.append(Seat("mail"))
    room.nursery.line_up(room.seats[-1])
    room.turn()
    assert room.filled == [0, 1, 5]


def test_beyond_the_usual_number_one_boots_and_no_more_however_many_queues_there_are(rooms):
    room = rooms(["a", "b", "c", "d", "e"])
    for _ in range(3):
        room.turn()
    assert room.filled == [0, 1, 2]
    room.turn(after=PATIENCE)
    assert room.filled == [0, 1, 2, 3]


def test_queues_take_turns(rooms):
    room = rooms(["a", "a", "a", "b", "b", "c"])
    order = []
    for _ in range(6):
        room.turn()
        (number,) = (n for n in room.filled if n not in order)
        order.append(number)
        room.change(number, SeatState.READY)
    assert [room.seats[number].line for number in order] == ["a", "b", "c", "a", "b", "a"]


def test_a_crash_loop_of_one_queue_lets_the_others_have_their_turn(rooms):
    """Each death lines up again at once, as the first of a seat does."""
    room = rooms(["loop"] * 3 + ["mail"] * 2)
    for _ in range(4):
        room.turn()
        for seat in room.seats[:3]:
            if seat.state is SeatState.STARTING:
                seat.state = SeatState.BACKOFF
                room.nursery.line_up(seat)
    assert {3, 4} <= set(room.filled)
