"""A wall clock that is set, and one that only drifts."""

from __future__ import annotations

import pytest

from cairnq_supervisor.pure.steps import ClockSteps

START = 1_700_000_000.0


@pytest.fixture
def steps():
    return ClockSteps(START, margin=1.0, quiet=30.0)


@pytest.mark.parametrize("by", [3600.0, -3600.0, 1.5])
def test_after_a_step_nothing_is_recovered_for_one_lease_and_what_is_held_is_renewed_once(steps, by):
    assert steps.may_recover(100.0)
    assert steps.look(START + by, 100.0) == by
    assert not steps.may_recover(129.9)
    assert steps.may_recover(130.0)
    assert steps.take_renewal()
    assert not steps.take_renewal()


def test_a_renewal_that_failed_is_owed_again(steps):
    steps.look(START + 5, 0.0)
    assert steps.take_renewal()
    steps.owe_renewal()
    assert steps.take_renewal()


def test_a_clock_that_is_slewed_little_by_little_has_not_stepped(steps):
    for second in range(100):
        assert steps.look(START + second * 0.5, float(second)) == 0.0
    assert steps.may_recover(100.0)
    assert not steps.take_renewal()


def test_a_second_step_makes_the_quiet_time_begin_again(steps):
    steps.look(START + 60, 10.0)
    steps.look(START, 35.0)
    assert not steps.may_recover(64.0)
    assert steps.may_recover(65.0)


def test_after_a_reload_a_step_is_one_by_the_lease_that_holds_now(steps):
    steps.adapt(margin=0.25, quiet=3.0)
    assert steps.look(START + 0.5, 100.0) == 0.5
    assert not steps.may_recover(102.9)
    assert steps.may_recover(103.0)
