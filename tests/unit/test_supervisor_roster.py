"""Reloads and scaling while a replacement is under way: a place is one place, however many processes are in it."""

from __future__ import annotations

import pytest

from cairnq_supervisor.pure.messages import Ready
from cairnq_supervisor.pure.settings import QueueSettings, Settings
from tests.support.stage import Stage

SETTINGS = Settings(
    app="shop:registry",
    queues=(QueueSettings("a", processes=2, lease=6.0),),
    database="sqlite:///nowhere.db",
    drain_timeout=10.0,
    boot_timeout=20.0,
)


class Room(Stage):
    """One queue with two workers."""

    @property
    def roster(self):
        return self.fleet.roster

    @property
    def wanted(self):
        """Number and generation of each seat that is to stay."""
        return sorted((seat.number, seat.generation) for seat in self.fleet.workers if seat.wanted)

    @property
    def shown_generation(self):
        return self.supervisor._showing.report()["supervisor"]["generation"]

    def seat(self, number, generation):
        return next(seat for seat in self.fleet.workers if (seat.number, seat.generation) == (number, generation))

    def child(self, seat):
        return next(child for child in self.world.unreaped if child.pid == seat.pid)

    def reload(self, *resource_queues):
        self.supervisor.reload_accepted(SETTINGS, resource_queues, None)
        self.turn()

    def fail_to_boot(self, seat):
        """As often as it takes to give it up."""
        for _ in range(3):
            self.end(self.child(seat), code=1)
            self.turn()
            self.now += 5.0
            self.turn()

    def go_on(self):
        """Everybody becomes ready, and who is told to leave does so."""
        for _ in range(12):
            for child in self.world.unreaped:
                self.become_ready(child)
            self.turn()
            for child in self.world.workers():
                if child.can_act and child.is_dismissed:
                    self.end(child, code=0)
            self.let_the_killed_die()
            self.turn()
        assert not self.roster.replacing

    def scale(self, processes):
        self.roster.scale(SETTINGS.queues[0], processes)
        self.turn()


@pytest.fixture
def room():
    room = Room(SETTINGS)
    room.fleet.start()
    room.turn()
    room.go_on()
    yield room
    room.leave()
    assert room.journal.heard("supervisor.fault") == []
    room.close()


class TestAReloadWhileASuccessorBoots:
    def test_no_worker_of_the_last_good_generation_leaves(self, room):
        room.reload()
        room.reload()
        assert {(0, 1), (1, 1)} <= set(room.wanted)

    def test_it_does_not_wait_for_what_it_is_to_mend(self, room):
        room.reload()
        broken = room.seat(0, 2)
        room.end(room.child(broken), code=1)
        room.turn()
        room.reload()
        assert not broken.wanted
        room.go_on()
        assert room.wanted == [(0, 3), (1, 3)]

    def test_the_one_that_is_just_ready_takes_the_place(self, room):
        room.reload()
        successor = room.seat(0, 2)
        room.child(successor).is_ready = True
        successor.heard(Ready())
        room.supervisor.reload_accepted(SETTINGS, (), None)
        assert successor.wanted
        assert not room.seat(0, 1).wanted
        room.go_on()
        assert room.wanted == [(0, 3), (1, 3)]


class TestScalingWhileASuccessorBoots:
    def test_a_place_in_which_two_are_counts_once(self, room):
        room.roster.replace(room.seat(0, 1), "it is old")
        room.turn()
        room.scale(3)
        room.go_on()
        assert [number for number, _ in room.wanted] == [0, 1, 2]

    def test_both_leave_a_place_that_is_no_longer_wanted(self, room):
        room.roster.replace(room.seat(1, 1), "it is old")
        room.turn()
        room.scale(1)
        assert room.wanted == [(0, 1)]
        room.go_on()
        assert room.wanted == [(0, 1)]

    def test_nobody_comes_for_one_that_left_before_its_turn(self, room):
        for number in (0, 1):
            room.roster.replace(room.seat(number, 1), "it is old")
        room.turn()
        room.scale(1)
        room.end(room.child(room.seat(1, 1)), code=0)
        room.turn()
        room.go_on()
        assert [number for number, _ in room.wanted] == [0]


class TestWhileAResourceIsGivenUp:
    def begin(self, room):
        room.reload("a")
        assert not room.seat(0, 1).wanted
        assert room.wanted == [(1, 1)]

    def test_scaling_counts_the_one_that_is_to_come(self, room):
        self.begin(room)
        room.scale(3)
        assert room.wanted == [(1, 1), (2, 2)]
        room.go_on()
        assert room.wanted == [(0, 2), (1, 2), (2, 2)]

    def test_it_does_not_come_when_its_place_is_no_longer_wanted(self, room):
        self.begin(room)
        room.scale(0)
        room.go_on()
        assert room.wanted == []

    def test_a_reload_waits_for_it_too(self, room):
        self.begin(room)
        room.reload("a")
        assert room.wanted == [(1, 1)]
        room.go_on()
        assert room.wanted == [(0, 3), (1, 3)]


class TestWhatIsSaidOfAReload:
    def test_one_whose_workers_do_not_become_ready_has_failed_and_the_old_generation_is_shown(self, room):
        room.reload()
        room.fail_to_boot(room.seat(0, 2))
        assert room.wanted == [(0, 1), (1, 1)]
        assert room.journal.heard("reload.finished") == []
        (failed,) = room.journal.heard("reload.failed")
        assert failed["reason"] == "those of a, for a successor does not become ready"
        assert room.shown_generation == 1

    def test_the_one_that_mends_it_finishes(self, room):
        room.reload()
        room.fail_to_boot(room.seat(0, 2))
        room.reload()
        room.go_on()
        assert room.journal.heard("reload.finished") == [{"generation": 3}]
        assert room.wanted == [(0, 3), (1, 3)]
        assert room.shown_generation == 3
