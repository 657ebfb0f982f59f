"""The numbers that an engine runs by, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cairnq.pure.errors import InvalidArgument

MIN_LEASE_S = 0.5


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Durations are seconds unless the name says `_ms`; sizes are bytes."""

    concurrency: int = 1
    """Handler calls at a time, over all names."""
    lease_s: float = 30.0
    poll_interval_s: float = 0.5
    claim_batch: int | None = None
    """The most tasks one claim takes, for all names together; None: as many as there are free slots for."""
    retry_backoff_ms: int = 1_000
    retry_backoff_max_ms: int = 30_000
    max_run_s: float | None = None
    max_in_flight_bytes: int | None = None
    resources: Mapping[str, int] = field(default_factory=dict)
    """Amounts that override those of the registry."""
    suspects_only: bool = False
    """Claim nothing but tasks that were in flight at two deaths of their process, one at a time."""
    cancel_grace_s: float = 2.0
    """How long a drain waits, past its deadline, for cancelled handlers to return."""

    def __post_init__(self) -> None:
        for name in ("concurrency", "claim_batch", "max_in_flight_bytes"):
            _check_count(name, getattr(self, name), least=1)
        for name in ("retry_backoff_ms", "retry_backoff_max_ms"):
            _check_count(name, getattr(self, name), least=0)
        for name, amount in self.resources.items():
            _check_count(f"resources[{name!r}]", amount, least=1)
        # Below this the margin, which is never under 0.25 s, would eat the window of trust.
        if not self.lease_s >= MIN_LEASE_S:
            raise InvalidArgument(f"lease_s must be at least {MIN_LEASE_S}, not {self.lease_s!r}")
        for name in ("poll_interval_s", "max_run_s", "cancel_grace_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidArgument(f"{name} must be above 0, not {value!r}")

    @property
    def lease_ms(self) -> int:
        return round(self.lease_s * 1000)


def _check_count(name: str, value: object, *, least: int) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
        raise InvalidArgument(f"{name} must be an integer of at least {least}, not {value!r}")
