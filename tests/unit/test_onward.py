"""Where claims begin to look, from scripted ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from cairnq.pure.onward import FULL_LOOK_S, LEAST, Onward, Place

ASKED, OTHER = (["default"], ["x"]), (["default"], ["y"])


def found(count: int, *, last: int = 1_000) -> list[Any]:
    """So many, in the order of the claim."""
    return [
        SimpleNamespace(task=SimpleNamespace(priority=0, run_at_ms=last - count + number, id=f"task_{number}"))
        for number in range(1, count + 1)
    ]


def test_the_first_begins_at_the_beginning_and_the_next_where_a_full_one_ended() -> None:
    onward = Onward()
    assert onward.begin(ASKED, 1.0) is None
    onward.claimed(ASKED, found(LEAST), LEAST)
    assert onward.begin(ASKED, 1.01) == Place(0, 1_000, f"task_{LEAST}")


def test_after_one_that_came_back_short_or_is_small_the_next_begins_at_the_beginning() -> None:
    for count, limit in ((LEAST, LEAST + 1), (0, LEAST), (LEAST - 1, LEAST - 1)):
        onward = Onward()
        onward.begin(ASKED, 1.0)
        onward.claimed(ASKED, found(count), limit)
        assert onward.begin(ASKED, 1.01) is None


def test_now_and_then_one_begins_at_the_beginning() -> None:
    onward, now, looks = Onward(), 0.0, 0
    while now < 10 * FULL_LOOK_S:
        looks += onward.begin(ASKED, now) is None
        onward.claimed(ASKED, found(LEAST), LEAST)
        now += FULL_LOOK_S / 10
    assert looks in (10, 11)


def test_claims_for_different_things_take_no_place_from_each_other() -> None:
    onward = Onward()
    onward.begin(ASKED, 1.0)
    onward.begin(OTHER, 1.0)
    onward.claimed(ASKED, found(LEAST), LEAST)
    assert onward.begin(OTHER, 1.01) is None
    onward.claimed(OTHER, found(LEAST), LEAST)
    assert onward.begin(ASKED, 1.02) is None
