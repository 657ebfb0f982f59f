"""Growing and shrinking, told as looks."""

from __future__ import annotations

from cairnq_supervisor.pure.sizing import Load, Sizing

SIZING = Sizing(low=1, high=8)


def load(processes, *, room=0, due=0, ready=None, concurrency=4):
    return Load(processes, processes if ready is None else ready, room, due, concurrency)


def test_a_busy_queue_with_a_backlog_doubles_up_to_the_limit():
    sizes = [1]
    while len(sizes) < 5:
        sizes.append(SIZING.after_sample(load(sizes[-1], due=1000)))
    assert sizes == [1, 2, 4, 8, 8]


def test_it_grows_by_no_more_than_have_something_to_do():
    assert SIZING.after_sample(load(4, due=3)) == 5
    assert SIZING.after_sample(load(4, due=5)) == 6


def test_it_does_not_grow_while_somebody_has_room_or_has_not_come_yet_or_nothing_waits():
    assert SIZING.after_sample(load(2, due=9, room=1)) == 2
    assert SIZING.after_sample(load(2, due=9, ready=1)) == 2
    assert SIZING.after_sample(load(2)) == 2


def test_more_than_the_limit_by_hand_is_left_alone():
    assert SIZING.after_sample(load(20, due=100)) == 20


def looks(*loads):
    sizing, wanted = SIZING, []
    for one in loads:
        sizing, processes = sizing.after_look(one)
        wanted.append(processes)
    return wanted


def test_a_whole_worker_too_many_in_two_looks_in_a_row_leaves():
    idle = load(3, room=4)
    assert looks(idle, idle, idle, idle) == [3, 2, 3, 2]


def test_a_busy_look_between_starts_anew():
    idle, busy = load(3, room=4), load(3, room=3)
    assert looks(idle, busy, idle, idle) == [3, 3, 3, 2]


def test_it_does_not_shrink_below_the_least_nor_while_work_waits():
    assert looks(load(1, room=4), load(1, room=4)) == [1, 1]
    assert looks(load(3, room=4, due=1), load(3, room=4, due=1)) == [3, 3]
