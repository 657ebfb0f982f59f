"""When the claim loop looks."""

from __future__ import annotations

import pytest

from cairnq.pure.looks import Looks

NEVER, AT_ONCE = float("inf"), float("-inf")


def test_the_first_look_is_at_once_and_then_each_poll() -> None:
    looks = Looks(0.5)
    assert looks.next_look() == AT_ONCE
    looks.take(10.0)
    assert 10.5 <= looks.next_look() <= 10.55, "spread by at most a tenth, and never more often than asked"


def test_after_a_wake_it_looks_three_times() -> None:
    looks = Looks(60.0)
    looks.take(10.0)
    looks.wake(10.0)
    seen = []
    for _ in range(3):
        seen.append(looks.next_look())
        looks.take(looks.next_look())
    assert seen == pytest.approx([10.0, 10.025, 10.1])
    assert looks.next_look() > 69.0


def test_a_wake_is_kept_until_its_looks_were_taken() -> None:
    looks = Looks(60.0)
    looks.polling = False
    looks.take(0.0)
    looks.wake(10.0)
    assert looks.next_look() == 10.0, "the gate may stay closed for as long as it likes"
    looks.take(500.0)
    assert looks.next_look() == NEVER, "one late look answers all three"


def test_without_polling_only_wakes_count() -> None:
    looks = Looks(0.5)
    looks.polling = False
    assert looks.next_look() == NEVER
    looks.again()
    assert looks.next_look() == AT_ONCE
    looks.take(1.0)
    assert looks.next_look() == NEVER


def test_holding_off_goes_before_everything() -> None:
    looks = Looks(0.5)
    looks.again()
    looks.wake(1.0)
    looks.hold_off(3.0)
    assert looks.next_look() == 3.0
