"""Durations and sizes as people write them: "250ms", "25s", "10m", "1h", "7d"; "512KiB", "64MiB", "2GiB"."""

from __future__ import annotations

import re

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")

DURATION_EXAMPLE = 'a duration such as "250ms", "25s", "10m", "1h" or "7d"'
SIZE_EXAMPLE = 'a size such as "512KiB", "64MiB" or "2GiB"'


def duration(text: str) -> float:
    """Seconds. Raises `ValueError` for anything that is not a number with one of the units."""
    return _parse(text, _SECONDS, DURATION_EXAMPLE)


def size(text: str) -> int:
    """Bytes. Raises `ValueError` for anything that is not a number with one of the units."""
    return int(_parse(text, _BYTES, SIZE_EXAMPLE))


def format_duration(seconds: float) -> str:
    """The shortest exact form for people: 0.25 is "250ms", 90 is "90s", 600 is "10m"."""
    if seconds < 1:
        return f"{seconds * 1000:g}ms"
    for unit in ("d", "h", "m"):
        if seconds % _SECONDS[unit] == 0:
            return f"{seconds / _SECONDS[unit]:g}{unit}"
    return f"{seconds:g}s"


def format_age(seconds: float) -> str:
    """For people, rounded: 90 is "1.5m", 7 is "7s"."""
    for unit in ("d", "h", "m"):
        if seconds >= _SECONDS[unit]:
            return f"{seconds / _SECONDS[unit]:.1f}{unit}"
    return f"{seconds:.0f}s"


def format_size(count: int) -> str:
    """For people, rounded: 1258291 is "1.2 MiB", 512 is "512 B"."""
    unit = max((unit for unit, factor in _BYTES.items() if count >= factor), key=_BYTES.__getitem__, default="B")
    return f"{count} B" if unit == "B" else f"{count / _BYTES[unit]:.1f} {unit}"


def _parse(text: str, units: dict[str, float] | dict[str, int], example: str) -> float:
    match = _QUANTITY.fullmatch(text.strip())
    if match is None or match[2] not in units:
        raise ValueError(example)
    return float(match[1]) * units[match[2]]
