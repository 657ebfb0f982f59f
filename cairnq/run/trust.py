"""Until when the holder of a lease may believe in it. Instants are boottime seconds."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

MIN_MARGIN_S: Final = 0.25
MAX_MARGIN_S: Final = 5.0


@lru_cache(maxsize=64)
def margin(lease_s: float) -> float:
    """Seconds of a lease that its holder does not use: for clock steps, drift and a cancelled handler's clean-up."""
    return max(MIN_MARGIN_S, min(lease_s / 6, MAX_MARGIN_S))


def trust_end(sent: float, lease_s: float) -> float:
    """Until when a holder may believe in a lease whose statement went to the driver at `sent`."""
    return sent + lease_s - margin(lease_s)
