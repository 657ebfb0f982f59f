"""How long a failed attempt waits before its next one."""

from __future__ import annotations

import random


def window_ms(attempt: int, *, base_ms: int, max_ms: int) -> int:
    """The longest delay after attempt number `attempt` (from 1): doubles up to `max_ms`; a base of 0 turns it off."""
    if base_ms <= 0:
        return 0
    # 2**63 is past any ceiling; without the bound a huge attempt would build a huge integer.
    return int(min(max_ms, base_ms * 2 ** min(max(attempt, 1) - 1, 63)))


def delay_ms(attempt: int, *, base_ms: int, max_ms: int, rng: random.Random | None = None) -> int:
    """A delay that falls uniformly into the upper half of the window, so that tasks that failed together part."""
    window = window_ms(attempt, base_ms=base_ms, max_ms=max_ms)
    if window == 0:
        return 0
    draw = rng.random() if rng is not None else random.random()  # noqa: S311 - jitter, not a secret
    return min(window - 1, int(window / 2 + draw * window / 2))  # a draw next to 1 is rounded up to the window itself
