"""Backoff: w = min(max, base * 2^(attempt-1)), and a delay in [w/2, w)."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cairnq.pure import backoff


@pytest.mark.parametrize(
    ("attempt", "window"), [(1, 1000), (2, 2000), (3, 4000), (4, 8000), (5, 16_000), (6, 30_000), (10**9, 30_000)]
)
def test_the_protocols_windows(attempt: int, window: int) -> None:
    assert backoff.window_ms(attempt, base_ms=1000, max_ms=30_000) == window


@given(st.integers(0, 2000), st.integers(0, 10**9), st.integers(0, 10**9), st.randoms())
def test_a_delay_falls_into_the_upper_half_of_its_window(
    attempt: int, base_ms: int, max_ms: int, rng: random.Random
) -> None:
    window = backoff.window_ms(attempt, base_ms=base_ms, max_ms=max_ms)
    assert 0 <= window <= max_ms
    delay = backoff.delay_ms(attempt, base_ms=base_ms, max_ms=max_ms, rng=rng)
    assert window // 2 <= delay < max(window, 1)


@given(st.integers(1, 2000), st.integers(1, 10**6))
def test_a_window_never_shrinks(attempt: int, base_ms: int) -> None:
    windows = [backoff.window_ms(n, base_ms=base_ms, max_ms=30_000) for n in (attempt, attempt + 1)]
    assert windows == sorted(windows)


@pytest.mark.parametrize("base_ms", [0, -1])
def test_a_base_of_nothing_turns_it_off(base_ms: int) -> None:
    assert backoff.delay_ms(5, base_ms=base_ms, max_ms=30_000) == 0


def test_delays_of_one_window_part() -> None:
    delays = {backoff.delay_ms(3, base_ms=1000, max_ms=30_000) for _ in range(200)}
    assert len(delays) > 50
    assert min(delays) < 2200
    assert max(delays) > 3800
