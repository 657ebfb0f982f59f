"""When a seat that lost its process is filled again, and when a fleet that never stood up gives up."""

from __future__ import annotations

from dataclasses import dataclass, replace

HEALTHY_AFTER = 10.0
"""Seconds of readiness after which a death counts as the first one again."""

FLAPPING_AT = 3
"""Unhealthy deaths in a row that make a seat `flapping`, and boots in a row that a first generation may fail."""


@dataclass(frozen=True, slots=True)
class Respawn:
    """One seat's record of deaths. At once the first time, then `first` seconds, doubling up to `ceiling`."""

    first: float = 1.0
    ceiling: float = 60.0
    failures: int = 0
    """Deaths in a row without `HEALTHY_AFTER` seconds of readiness between them."""

    ever_ready: bool = False

    def after_death(self, *, now: float, ready_since: float | None) -> Respawn:
        """The record after a process of this seat ended unasked at `now`; `ready_since` None: it never was ready."""
        healthy = ready_since is not None and now - ready_since >= HEALTHY_AFTER
        return replace(
            self,
            failures=1 if healthy else self.failures + 1,
            ever_ready=self.ever_ready or ready_since is not None,
        )

    @property
    def delay(self) -> float:
        """Seconds from the latest death to the next fork."""
        if self.failures <= 1:
            return 0.0
        # 2**32 seconds is past any ceiling; without the bound a long crash loop would build huge integers.
        return min(self.ceiling, self.first * 2.0 ** min(self.failures - 2, 32))

    def flapping(self, *, now: float, ready_since: float | None) -> bool:
        """Too many deaths in a row, and the present process (if any) has not yet proved itself."""
        proved = ready_since is not None and now - ready_since >= HEALTHY_AFTER
        return self.failures >= FLAPPING_AT and not proved

    @property
    def hopeless(self) -> bool:
        """No process of this seat ever became ready, in as many tries as a first generation gets."""
        return not self.ever_ready and self.failures >= FLAPPING_AT


REPEAT_WINDOW = 1.0
"""Seconds within which a second signal is the first one heard twice: process groups are often signalled so."""


def is_repeat(*, now: float, first_at: float | None) -> bool:
    return first_at is not None and now - first_at < REPEAT_WINDOW
