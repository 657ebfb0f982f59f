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
    def __init__(self):
        self.state = SeatState.BACKOFF

    @property
    def is_due(self):
        return self.state is SeatState.BACKOFF

    def fill(self):
        self.state = SeatState.STARTING


class Room:
    """A nursery for two, its loop, and seats that wait."""

    def __init__(self, waiting):
        self.clock = Clock()
        self.faults = []
        self.reactor = Reactor(self.clock, self.faults.append)
        self.nursery = Nursery(self.reactor, self.clock, most=2)
        self.seats = [Seat() for _ in range(waiting)]
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
def room():
    room = Room(5)
    yield room
    room.reactor.close()
    assert room.faults == []


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
