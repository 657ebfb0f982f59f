"""Ours beside each peer: ratios run by run, the peer by the fastest of its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from bench.figures import Figure, of_runs, short
from bench.session import fastest, median, ratios
from bench.systems.base import Setting, System
from bench.systems.ours import DEFAULTS, OURS

Runs = Mapping[str, Sequence[float]]


def name(system: System, setting: Setting | None = None) -> str:
    return system.name if setting is None else f"{system.name}, {setting.name}"


def compared(
    what: str,
    runs: Runs,
    mine: str,
    theirs: str | None,
    must: float | None = None,
    *,
    unit: str = "/s",
    better: Literal["lower", "higher"] = "higher",
) -> Iterator[Figure]:
    """One figure, or none where either could not be measured."""
    if theirs is None or not runs.get(mine) or not runs.get(theirs):
        return
    found = ratios(runs[mine], runs[theirs])
    if found:
        detail = f"{short(median(runs[mine]))} {unit} beside {short(median(runs[theirs]))} {unit}"
        yield of_runs(f"{what}: {mine} beside {theirs}", found, "x", detail, target=must, better=better)


def beside_peers(
    what: str,
    runs: Runs,
    mine: str,
    musts: Mapping[str, float],
    *,
    unit: str = "/s",
    better: Literal["lower", "higher"] = "higher",
) -> Iterator[Figure]:
    """`mine` beside everything else that was measured; `musts`: what some of the ratios must be, by the peer's name."""
    for theirs in runs:
        if theirs != mine:
            yield from compared(what, runs, mine, theirs, musts.get(theirs), unit=unit, better=better)


def beside_fastest(what: str, runs: Runs, mine: str, peers: Sequence[System], *, unit: str = "/s") -> Iterator[Figure]:
    """`mine` beside the fastest setting of each peer."""
    for peer in peers:
        yield from compared(what, runs, mine, best_of(runs, peer), unit=unit)


def settings_of(system: System, *, quick: bool) -> Sequence[Setting]:
    """Of a peer the one for waiting and the best, whichever turns out to be faster; of ours the defaults alone."""
    if system is OURS:
        return [DEFAULTS]
    return [system.best] if quick or system.best is system.waiting else [system.best, system.waiting]


def best_of(runs: Runs, system: System) -> str | None:
    return fastest(runs, [name(system, setting) for setting in system.settings])
