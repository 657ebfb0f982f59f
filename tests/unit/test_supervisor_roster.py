"""Reloads and scaling while a replacement is under way: a place is one place, however many processes are in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cairnq_supervisor.loop.sizer import LOOK_INTERVAL
from cairnq_supervisor.pure.messages import Ready
from cairnq_supervisor.pure.settings import QueueSettings, Settings
from cairnq_supervisor.pure.waking import SILENT_AFTER
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
        return next(seat for seat in self.roster.of("a") if (seat.number, seat.generation) == (number, generation))

    def child(self, seat):
        return next(child for child in self.world.unreaped if child.pid == seat.pid)

    def reload(self, *resource_queues, settings=SETTINGS):
        self.supervisor.reload_accepted(settings, resource_queues, None)
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


def with_queues(*queues):
    return replace(SETTINGS, queues=queues)


class TestAfterAReloadThatWasGivenUp:
    """What does not stand up is not what more, or later, workers are made of."""

    def give_up(self, room, **changes):
        room.reload(**changes)
        room.fail_to_boot(room.seat(0, 2))
        assert len(room.journal.heard("reload.failed")) == 1

    def test_scaling_up_hires_workers_of_the_generation_that_stayed(self, room):
        self.give_up(room, settings=with_queues(QueueSettings("a", processes=2, concurrency=77)))
        assert room.supervisor.scale(1)
        room.turn()
        room.go_on()
        assert room.wanted == [(0, 1), (1, 1), (2, 1)]
        assert {seat.queue.concurrency for seat in room.fleet.workers} == {SETTINGS.queues[0].concurrency}
        assert {child.plan.queue.concurrency for child in room.world.workers()} == {SETTINGS.queues[0].concurrency}

    def test_the_successor_of_a_spent_worker_is_of_it_too(self, room):
        self.give_up(room)
        room.roster.replace(room.seat(1, 1), "it is old")
        room.turn()
        room.go_on()
        assert room.wanted == [(0, 1), (1, 1)]
        assert len(list(room.world.workers())) == 2

    @pytest.mark.parametrize("processes", [1, 2, 4])
    def test_the_queue_has_as_many_as_before(self, room, processes):
        self.give_up(room, settings=with_queues(QueueSettings("a", processes=processes, lease=6.0)))
        room.go_on()
        assert room.wanted == [(0, 1), (1, 1)]
        assert room.roster.wanted("a") == 2

    def test_what_an_operator_scaled_meanwhile_stays(self, room):
        room.reload()
        room.scale(3)
        room.fail_to_boot(room.seat(0, 2))
        room.go_on()
        assert room.wanted == [(0, 1), (1, 1), (2, 1)]

    def test_its_range_of_processes_is_the_one_from_before(self, room):
        self.give_up(room, settings=with_queues(QueueSettings("a", processes=2, max_processes=9, lease=6.0)))
        room.go_on()
        for _ in range(SETTINGS.queues[0].concurrency):
            room.take_tasks(10)
        assert [seat.room for seat in room.fleet.workers] == [0, 0]
        room.fleet.sizer.sampled({"a": 1000})
        room.turn()
        room.go_on()
        assert room.wanted == [(0, 1), (1, 1)]

    def test_another_one_that_is_given_up_goes_back_to_the_last_good_one(self, room):
        room.reload()
        room.reload()
        room.fail_to_boot(room.seat(0, 3))
        room.scale(3)
        room.go_on()
        assert room.wanted == [(0, 1), (1, 1), (2, 1)]

    def test_a_place_whose_worker_had_to_leave_first_is_filled_as_before_and_no_other_is_given_up_for_it(self, room):
        room.reload("a")
        room.end(room.child(room.seat(0, 1)), code=0)
        room.turn()
        room.fail_to_boot(room.seat(0, 2))
        room.go_on()
        assert room.wanted == [(0, 1), (1, 1)]
        (failed,) = room.journal.heard("reload.failed")
        assert failed["reason"] == "those of a, for a successor does not become ready"

    def test_suspects_are_run_by_it_too(self, room):
        room.reload()
        room.fleet._quarantine.sampled({"a": 1})
        (broken,) = room.roster.quarantine("a")
        room.fail_to_boot(room.seat(0, 2))
        assert not broken.wanted
        room.fleet._quarantine.sampled({"a": 1})
        room.turn()
        assert [seat.generation for seat in room.roster.quarantine("a")] == [1]

    def test_what_was_replaced_stays_so_and_only_the_rest_goes_back(self, room):
        room.reload(settings=with_queues(*SETTINGS.queues, QueueSettings("b", lease=6.0)))
        room.become_ready(room.child(room.seat(0, 2)))
        room.turn()
        room.end(room.child(room.seat(0, 1)), code=0)
        room.turn()
        room.fail_to_boot(room.seat(1, 2))
        room.go_on()
        names = sorted((seat.queue.name, seat.number, seat.generation) for seat in room.fleet.workers)
        assert names == [("a", 0, 2), ("a", 1, 1), ("b", 0, 2)]


def test_a_range_of_processes_grows_where_the_only_worker_is_blocked_with_room_left(room):
    room.reload(settings=with_queues(QueueSettings("a", processes=1, max_processes=4, concurrency=10, lease=6.0)))
    room.go_on()
    (child,) = room.world.workers()
    room.take_tasks(1)
    child.table.last_progress = room.now
    room.fleet.sizer.sampled({"a": 10})
    assert room.roster.wanted("a") == 1
    room.now += SILENT_AFTER + 1
    room.fleet.sizer.sampled({"a": 10})
    room.turn()
    room.go_on()
    assert len(room.wanted) == 2


def test_a_range_of_processes_that_a_reload_ended_shrinks_nothing_any_more(room):
    room.reload(settings=with_queues(QueueSettings("a", processes=1, max_processes=4, concurrency=1, lease=6.0)))
    room.go_on()
    room.take_tasks(1)
    room.fleet.sizer.sampled({"a": 10})
    room.turn()
    room.go_on()
    assert len(room.wanted) == 2
    room.fleet.sizer.sampled({})
    room.reload(settings=with_queues(QueueSettings("a", processes=3, lease=6.0)))
    for child in room.world.workers():
        room.finish_all(child)
    room.go_on()
    for _ in range(4):
        room.now += LOOK_INTERVAL
        room.turn()
        room.let_the_keeper_work()
        room.turn()
    assert len(room.wanted) == 3
