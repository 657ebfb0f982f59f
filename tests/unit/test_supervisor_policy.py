"""Respawning, told as histories of deaths."""

from __future__ import annotations

from cairnq_supervisor.pure.policy import HEALTHY_AFTER, Respawn, is_repeat


def deaths(record: Respawn, *lives: float | None) -> list[float]:
    """The delays after lives of these lengths (None: never ready)."""
    delays, now = [], 0.0
    for life in lives:
        ready_since = None if life is None else now
        now += life or 0.1
        record = record.after_death(now=now, ready_since=ready_since)
        delays.append(record.delay)
        now += record.delay
    return delays


def test_the_first_death_is_answered_at_once_and_the_next_ones_slower_up_to_the_ceiling():
    assert deaths(Respawn(), *[1.0] * 9) == [0, 1, 2, 4, 8, 16, 32, 60, 60]


def test_a_healthy_life_makes_the_next_death_a_first_one():
    assert deaths(Respawn(), 1.0, 1.0, 1.0, HEALTHY_AFTER, 1.0) == [0, 1, 2, 0, 1]


def test_a_child_that_never_became_ready_was_not_healthy_however_long_it_booted():
    assert deaths(Respawn(), None, None, None) == [0, 1, 2]


def test_a_ceiling_below_the_first_step_holds():
    assert deaths(Respawn(first=0.5, ceiling=0.8), 1.0, 1.0, 1.0, 1.0) == [0, 0.5, 0.8, 0.8]


def test_ten_thousand_deaths_do_not_overflow():
    assert Respawn(failures=10_000).delay == 60


def test_flapping_ends_with_proved_health_only():
    record = Respawn(failures=3)
    assert record.flapping(now=100.0, ready_since=None)
    assert record.flapping(now=100.0, ready_since=95.0)
    assert not record.flapping(now=100.0, ready_since=100.0 - HEALTHY_AFTER)
    assert not Respawn(failures=2).flapping(now=100.0, ready_since=None)


def test_a_seat_is_hopeless_after_three_boots_that_failed_from_the_beginning():
    record = Respawn()
    for _ in range(2):
        record = record.after_death(now=1.0, ready_since=None)
    assert not record.hopeless
    assert record.after_death(now=1.0, ready_since=None).hopeless
    assert not record.after_death(now=1.0, ready_since=0.9).hopeless


def test_a_signal_is_a_repeat_within_one_second():
    assert not is_repeat(now=5.0, first_at=None)
    assert is_repeat(now=5.0, first_at=4.1)
    assert not is_repeat(now=5.0, first_at=4.0)
