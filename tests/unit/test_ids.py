"""Ids: ULIDs that sort by time, and rise within a process whatever its clock does."""

from __future__ import annotations

import os
import re
import threading
import time

from hypothesis import given
from hypothesis import strategies as st

from cairnq.pure import ids

CROCKFORD = "[0-9A-HJKMNP-TV-Z]"
MOMENTS = st.integers(0, 2**48 - 1)


def value_of(ulid: str) -> int:
    value = 0
    for char in ulid:
        value = value * 32 + ids.ALPHABET.index(char)
    return value


def test_an_id_is_its_prefix_and_26_characters() -> None:
    assert re.fullmatch(f"task_{CROCKFORD}{{26}}", ids.new_task_id())
    assert re.fullmatch(f"worker_{CROCKFORD}{{26}}", ids.new_worker_id())


def test_an_id_begins_with_the_time_in_milliseconds() -> None:
    before = time.time_ns() // 1_000_000
    ulid = ids.new_task_id().removeprefix("task_")
    after = time.time_ns() // 1_000_000
    assert before <= value_of(ulid[:10]) <= after + 1


@given(MOMENTS)
def test_a_time_of_48_bits_is_ten_characters(moment: int) -> None:
    ulid = ids.UlidGenerator().next(moment)
    assert re.fullmatch(f"[0-7]{CROCKFORD}{{25}}", ulid)
    assert value_of(ulid) >> 80 == moment


@given(st.lists(MOMENTS, min_size=2, max_size=50))
def test_ids_rise_whatever_the_clock_does(moments: list[int]) -> None:
    generator = ids.UlidGenerator()
    made = [generator.next(moment) for moment in moments]
    assert made == sorted(set(made))
    assert [value_of(ulid) >> 80 for ulid in made] == [max(moments[: n + 1]) for n in range(len(moments))]


@given(MOMENTS, MOMENTS)
def test_ids_of_two_generators_sort_by_time(one: int, other: int) -> None:
    if one != other:
        assert (ids.UlidGenerator().next(one) < ids.UlidGenerator().next(other)) == (one < other)


@given(MOMENTS)
def test_a_bound_is_at_or_before_every_id_of_its_time(moment: int) -> None:
    bound = ids.first_task_id_at(moment)
    assert bound <= "task_" + ids.UlidGenerator().next(moment)
    if moment:
        assert bound > "task_" + ids.UlidGenerator().next(moment - 1)


def test_a_bound_before_the_epoch_is_the_epochs() -> None:
    assert ids.first_task_id_at(-5) == "task_" + "0" * 26


def test_threads_never_get_the_same_id() -> None:
    generator = ids.UlidGenerator()
    made: list[list[str]] = [[] for _ in range(8)]
    start = threading.Barrier(8)

    def make(mine: list[str]) -> None:
        start.wait()
        mine.extend(generator.next(1) for _ in range(2000))

    threads = [threading.Thread(target=make, args=(mine,)) for mine in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({ulid for mine in made for ulid in mine}) == 16_000
    assert all(mine == sorted(mine) for mine in made)


def test_a_forked_child_does_not_repeat_its_parents_ids() -> None:
    ids.new_task_id()
    from_child, to_parent = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(to_parent, "\n".join(ids.new_task_id() for _ in range(50)).encode())
        os._exit(0)
    os.close(to_parent)
    mine = {ids.new_task_id() for _ in range(50)}
    os.waitpid(child, 0)
    with os.fdopen(from_child) as pipe:
        theirs = set(pipe.read().split())
    assert len(theirs) == 50
    assert mine.isdisjoint(theirs)
