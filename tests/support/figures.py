"""How much of something a test does: a small figure in CI, the full one where it is asked for."""

from __future__ import annotations

import os

VARIABLE = "CAIRNQ_FULL_FIGURES"


def figure(small: int, full: int) -> int:
    """`full` where the environment says `CAIRNQ_FULL_FIGURES=1`, as for `make stress`."""
    return full if os.environ.get(VARIABLE) == "1" else small
