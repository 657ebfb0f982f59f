"""Processes for suspects: as many as have something to do, and none is taken for idle before it could begin."""

from __future__ import annotations

import pytest

from cairnq_supervisor.pure.keeper_messages import Sampled
from cairnq_supervisor.pure.lifecycle import SeatState
from cairnq_supervisor.pure.settings import QueueSettings, Settings
from tests.support.stage import Stage

SETTINGS = Settings(
    app="shop:registry",
    queues=(QueueSettings("a", processes=3, lease=6.0),),
    database="sqlite:///nowhere.db",
)


class Room(Stage):
    """One queue with three workers, all ready."""

    def begin(self):
        self.fleet.start()
        for _ in range(4):
            self.turn()
            self.become_ready_all()

    def become_ready_all(self):
        for child in self.world.unreaped:
            self.become_ready(child)
        self.turn()

    def sample(self, suspects):
        """The nursery has filled everybody by then."""
        for keeper in self.world.keepers():
            keeper.say(Sampled({"a": [suspects, 0, None, suspects]}))
        for _ in range(4):
            self.turn()

    @property
    def states(self):
        return [seat.state for seat in self.fleet.roster.quarantine("a")]


@pytest.fixture
def room():
    room = Room(SETTINGS)
    room.begin()
    yield room
    room.leave()
    assert room.journal.heard("supervisor.fault") == []
    room.close()


def test_those_that_boot_are_left_to_it_and_nobody_is_hired_beside_them(room):
    for _ in range(3):
        room.sample(suspects=2)
        assert room.states == [SeatState.STARTING] * 2
    assert len(room.journal.heard("queue.quarantined")) == 1
    assert room.journal.heard("worker.killed") == []


def test_of_those_that_are_ready_and_idle_one_stays(room):
    room.sample(suspects=2)
    room.become_ready_all()
    room.sample(suspects=2)
    assert room.states == [SeatState.READY]


def test_nobody_stays_once_no_suspect_waits(room):
    room.sample(suspects=2)
    room.sample(suspects=0)
    assert room.states == []
