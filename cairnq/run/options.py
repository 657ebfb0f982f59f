"""The numbers that an engine runs by, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cairnq.pure.errors import InvalidArgument


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
    cancel_grace_s: float = 2.0
    """How long a drain waits, past its deadline, for cancelled handlers to return."""

    def __post_init__(self) -> None:
        _at_least("concurrency", self.concurrency, 1)
        _at_least("retry_backoff_ms", self.retry_backoff_ms, 0)
        _at_least("retry_backoff_max_ms", self.retry_backoff_max_ms, 0)
        _at_least("claim_batch", self.claim_batch, 1)
        _at_least("max_in_flight_bytes", self.max_in_flight_bytes, 1)
        # Below this the margin, which is never under 0.25 s, would eat the window of trust.
        _at_least("lease_s", self.lease_s, 0.5)
        _above_zero("poll_interval_s", self.poll_interval_s)
        _above_zero("max_run_s", self.max_run_s)
        for name, amount in self.resources.items():
            _at_least(f"resources[{name!r}]", amount, 1)

    @property
    def lease_ms(self) -> int:
        return round(self.lease_s * 1000)


def _at_least(name: str, value: float | None, least: float) -> None:
    if value is not None and not value >= least:
        raise InvalidArgument(f"{name} must be at least {least}, not {value!r}")


def _above_zero(name: str, value: float | None) -> None:
    if value is not None and not value > 0:
        raise InvalidArgument(f"{name} must be above 0, not {value!r}")
