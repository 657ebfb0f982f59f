"""What a worker tells of itself beside its leases: a word for each gauge, in the header of the lease table."""

from __future__ import annotations

from typing import Final

_FIRST: Final = 8
"""The word of the first gauge, behind what the table says of itself."""


class _Count:
    """A gauge that holds an integer. (A gauge is part of the table: it may reach into it.)"""

    def __init__(self, offset: int) -> None:
        self._word = _FIRST + offset

    def __get__(self, table: Gauges, owner: type | None = None) -> int:
        return table._ints[self._word]  # noqa: SLF001

    def __set__(self, table: Gauges, value: int) -> None:
        table._ints[self._word] = value  # noqa: SLF001


class _Seconds:
    """A gauge that holds seconds."""

    def __init__(self, offset: int) -> None:
        self._word = _FIRST + offset

    def __get__(self, table: Gauges, owner: type | None = None) -> float:
        return table._floats[self._word]  # noqa: SLF001

    def __set__(self, table: Gauges, value: float) -> None:
        table._floats[self._word] = value  # noqa: SLF001


class Gauges:
    """A reader in another process sees each word whole, and no two of one moment."""

    in_flight_calls = _Count(0)
    in_flight_bytes = _Count(1)
    concurrency = _Count(2)
    last_progress = _Seconds(3)
    """The instant at which the holder's loop last turned."""
    loop_lag = _Seconds(4)
    """How late that turn was, in seconds."""
    claimed = _Count(5)
    succeeded = _Count(6)
    failed = _Count(7)
    released = _Count(8)
    shut = _Count(9)
    """Names whose own concurrency is used up: work of theirs is not for this worker now."""
    units = _Count(10)
    """Of host-wide resources, those that its calls may use."""
    is_claiming = _Count(11)
    """0 while it takes nothing, however much room it has."""
    ran_out_at = _Seconds(12)
    """When trust ended here last in what nobody had renewed, or the supervisor learnt that nobody would."""
    beaten_at = _Seconds(13)
    """The keeper's: when the latest beat went out that was answered."""

    _ints: memoryview[int]
    _floats: memoryview[float]
