"""What workers wrote down (see `Notes` of programs/common.py): moments of calls, or how long calls took to come."""

from __future__ import annotations

from pathlib import Path

EDGE = 20
"""A twentieth is left out of a rate at its beginning, for the start-up; at its end too where the work goes on."""


def numbers(folder: Path) -> list[int]:
    """All of them, of all processes; a line that is being written is left for the next look."""
    found: list[int] = []
    for file in folder.iterdir():
        text = file.read_bytes()
        found += [int(line) for line in text[: text.rfind(b"\n") + 1].split()]
    return found


def count(folder: Path) -> int:
    """How many there are, by the size of the files' lines."""
    return sum(file.read_bytes().count(b"\n") for file in folder.iterdir())


def pids(folder: Path) -> list[int]:
    return sorted(int(file.name) for file in folder.iterdir())


def rate(moments: list[int], every: int, settled_at: int | None = None) -> float:
    """Tasks a second; one of `moments` (ns) for each `every` calls. `settled_at`: when the last was settled.

    Without it, calls a second while all goes on. That would flatter who claims much more than it has settled.
    """
    ordered = sorted(moments)
    first = len(ordered) // EDGE
    last, end = len(ordered), settled_at
    if end is None:
        last = len(ordered) - 1 - first
        end = ordered[last]
    if last - first < 5 or end <= ordered[first]:
        raise ValueError(f"{len(ordered)} moments are too few for a rate")
    return (last - first) * every / (end - ordered[first]) * 1e9


def percentile(values: list[int], percent: int) -> float:
    ordered = sorted(values)
    return float(ordered[min(len(ordered) - 1, len(ordered) * percent // 100)])
