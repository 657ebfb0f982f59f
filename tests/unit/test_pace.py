"""How far ahead a worker claims, from scripted calls and claims."""

from __future__ import annotations

import pytest

from cairnq.pure.pace import AHEAD_S, MOST_AHEAD, MOST_AHEAD_S, Pace


class Script:
    """A worker with always more to claim, whose calls each take `took_s`, so many at a time."""

    def __init__(self) -> None:
        self.pace = Pace()
        self.now = 0.0

    def run(self, seconds: float, *, took_s: float, at_a_time: int, claims_every_s: float = 0.01) -> int:
        """How many may be held ahead afterwards."""
        for _ in range(round(seconds / claims_every_s)):
            self.now += claims_every_s
            for _ in range(round(at_a_time * claims_every_s / took_s)):
                self.pace.returned(took_s)
            self.pace.claimed(self.now, full=True)
        return self.pace.ahead()


def test_nothing_is_known_at_first() -> None:
    pace = Pace()
    assert pace.ahead() == 0
    pace.claimed(1.0, full=True)
    assert pace.ahead() == 0


def test_what_is_held_ahead_is_worked_off_within_the_span() -> None:
    ahead = Script().run(1.0, took_s=0.005, at_a_time=50)
    assert ahead == pytest.approx(10_000 * AHEAD_S, abs=1)
    assert Script().run(1.0, took_s=0.01, at_a_time=4) == pytest.approx(400 * AHEAD_S, abs=1)


def test_there_is_a_most() -> None:
    assert Script().run(1.0, took_s=0.0001, at_a_time=10) == MOST_AHEAD


def test_long_calls_are_not_claimed_ahead_however_many_run() -> None:
    assert Script().run(10.0, took_s=1.0, at_a_time=1000, claims_every_s=0.1) == 0
    assert Script().run(1.0, took_s=AHEAD_S * 1.1, at_a_time=1000, claims_every_s=0.022) == 0


def test_a_long_call_ends_it_and_short_ones_bring_it_back() -> None:
    script = Script()
    assert script.run(1.0, took_s=0.001, at_a_time=10) > 0
    script.pace.returned(60.0)
    assert script.pace.ahead() == 0
    assert script.run(1.0, took_s=0.001, at_a_time=10) > 0


def test_a_slow_worker_holds_nothing_ahead() -> None:
    assert Script().run(2.0, took_s=0.02, at_a_time=1, claims_every_s=0.1) <= 1
    script = Script()
    for _ in range(10):
        script.now += 1.0
        script.pace.returned(0.001)
        script.pace.claimed(script.now, full=True)
    assert script.pace.ahead() == 0, "calls are short and come once a second"


def test_a_claim_that_comes_back_short_ends_it() -> None:
    script = Script()
    assert script.run(1.0, took_s=0.001, at_a_time=10) > 0
    script.pace.claimed(script.now + 0.01, full=False)
    assert script.pace.ahead() == 0
    script.pace.claimed(script.now + 10.0, full=True)
    assert script.pace.ahead() > 0, "what was learnt is kept: the pause was not the worker's"


def test_the_time_without_work_does_not_count() -> None:
    script = Script()
    before = script.run(1.0, took_s=0.005, at_a_time=10)
    script.pace.claimed(script.now + 0.01, full=False)
    script.now += 3600
    script.pace.claimed(script.now, full=True)
    assert script.run(0.05, took_s=0.005, at_a_time=10) == before


def test_a_claim_before_anything_has_returned_tells_no_rate() -> None:
    script = Script()
    before = script.run(1.0, took_s=0.001, at_a_time=10)
    script.pace.claimed(script.now + 1.0, full=True)
    assert script.pace.ahead() == before > 0


def test_what_has_ended_waits_for_a_claim_only_while_one_is_near() -> None:
    script = Script()
    assert script.pace.hold_s() == 0.0
    script.run(1.0, took_s=0.001, at_a_time=10)
    assert script.pace.hold_s() == AHEAD_S / 2
    script.pace.returned(60.0)
    assert script.pace.hold_s() == 0.0


def test_two_claims_within_a_burst_tell_no_rate() -> None:
    pace = Pace()
    for number in range(3):
        pace.claimed(number * 0.0001, full=True)
        for _ in range(100):
            pace.returned(0.0001)
    assert pace.ahead() == 0


def test_a_stall_forgets_everything() -> None:
    script = Script()
    assert script.run(1.0, took_s=0.001, at_a_time=10) > 0
    script.pace.stalled()
    assert script.pace.ahead() == 0
    script.pace.claimed(script.now + 1.0, full=True)
    assert script.pace.ahead() == 0


def waiting(reply_s: float) -> Pace:
    """Of a worker with 50 slots and calls of 5 ms, each of whose claims brings 50 tasks and takes so long."""
    pace, now = Pace(), 0.0
    for _ in range(50):
        now += reply_s
        pace.claimed(now, full=True, took_s=reply_s)
        pace.idle(now, 0.0)
        now += 0.005
        for _ in range(50):
            pace.returned(0.005)
        pace.idle(now, 1.0)
    return pace


def test_slots_that_wait_for_a_reply_make_no_rate_lower() -> None:
    assert waiting(0.004).ahead() == pytest.approx(10_000 * AHEAD_S, abs=1)


def test_a_share_of_the_slots_that_waits_counts_as_such_a_share_of_the_time() -> None:
    pace = Pace()
    pace.claimed(0.0, full=True)
    pace.idle(0.0, 0.0)
    pace.idle(0.01, 0.5)
    for _ in range(150):
        pace.returned(0.001)
    pace.claimed(0.02, full=True)
    assert pace.ahead() == pytest.approx(10_000 * AHEAD_S, abs=1)


def test_what_is_held_ahead_lasts_for_slow_replies_within_bounds() -> None:
    assert waiting(0.004).hold_s() == AHEAD_S / 2
    assert AHEAD_S / 2 < waiting(0.01).hold_s() < MOST_AHEAD_S / 2
    assert waiting(0.1).hold_s() == MOST_AHEAD_S / 2
    assert waiting(0.1).ahead() == MOST_AHEAD


def test_more_is_asked_for_when_half_is_left_and_earlier_where_slots_had_to_wait() -> None:
    script = Script()
    half = script.run(1.0, took_s=0.001, at_a_time=10) // 2
    assert script.pace.enough() == half
    waited = waiting(0.01)
    assert waited.enough() == waited.ahead() * 3 // 4
    assert Pace().enough() == 0


def test_once_no_slot_has_to_wait_any_more_half_is_enough_again() -> None:
    pace, now = waiting(0.01), 1000.0
    pace.claimed(now, full=False)
    for _ in range(50):
        pace.idle(now, 0.0)
        pace.claimed(now, full=True)
        now += 0.01
        for _ in range(10):
            pace.returned(0.005)
    assert pace.enough() == pace.ahead() // 2 > 0


def test_while_nothing_waits_to_be_claimed_nothing_is_learnt_of_idle_slots() -> None:
    pace = waiting(0.004)
    before = pace.ahead()
    pace.claimed(1.0, full=False, took_s=0.004)
    pace.idle(1.0, 1.0)
    pace.claimed(3600.0, full=True, took_s=0.004)
    pace.idle(3600.0, 0.0)
    for _ in range(100):
        pace.returned(0.005)
    pace.claimed(3600.01, full=True, took_s=0.004)
    assert pace.ahead() == before
