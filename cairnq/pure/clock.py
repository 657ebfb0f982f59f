"""The one clock of a host by which trust in a lease is judged."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

Clock = Callable[[], float]
"""Returns seconds as a float from an arbitrary origin; never steps back."""

if hasattr(time, "CLOCK_BOOTTIME"):
    boottime: Clock = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    """Seconds since boot, suspend included, the same for every process of this host.

    CLOCK_MONOTONIC stands still while a laptop sleeps, and a lease in the database does not.
    """

else:
    boottime = time.monotonic
