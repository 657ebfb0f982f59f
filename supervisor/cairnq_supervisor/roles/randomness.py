"""Random state that a library keeps for its whole process: after a fork every child would draw the same from it."""

from __future__ import annotations

import sys

_RESEED = {"numpy.random": "seed"}
"""By module, what seeds its global state afresh from the system. CPython does so for `random` by itself."""


def part_random_states() -> None:
    """In a child, of what the application has imported before the fork."""
    for module, seed in _RESEED.items():
        if module in sys.modules:
            getattr(sys.modules[module], seed)()
