"""A measured figure, what it must reach, and the table of all of them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Figure:
    """`target` None: for information. `detail`: the numbers behind it. `runs`: what `value` is the median of."""

    name: str
    value: float
    unit: str
    detail: str
    target: float | None = None
    better: Literal["lower", "higher"] = "lower"
    runs: Sequence[float] = ()

    @property
    def reached(self) -> bool | None:
        if self.target is None:
            return None
        return self.value <= self.target if self.better == "lower" else self.value >= self.target

    @property
    def verdict(self) -> str:
        if self.target is None:
            return ""
        sign = "<=" if self.better == "lower" else ">="
        return f"{sign} {self.target:.3g} {'reached' if self.reached else 'NOT REACHED'}"

    @property
    def shown(self) -> str:
        """The value, and where several runs have been made, their range."""
        spread = f" ({short(min(self.runs))} to {short(max(self.runs))})" if len(self.runs) > 1 else ""
        return f"{short(self.value)} {self.unit}{spread}"


def of_runs(
    name: str,
    runs: Sequence[float],
    unit: str,
    detail: str = "",
    *,
    target: float | None = None,
    better: Literal["lower", "higher"] = "lower",
) -> Figure:
    """The median of `runs`, of which there is at least one."""
    return Figure(name, statistics.median(runs), unit, detail, target, better, tuple(runs))


def short(value: float) -> str:
    """Three digits that count, and never an exponent."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value == 0 or abs(value) >= 0.001 else f"{value:.6f}"


def table(figures: Iterable[Figure]) -> str:
    """Markdown; ratios first, then what must be reached, then the rest."""
    ordered = sorted(figures, key=lambda figure: (figure.unit != "x", figure.target is None))
    rows = [("figure", "value", "must be", "from")]
    rows += [(f.name, f.shown, f.verdict, f.detail) for f in ordered]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        "| " + " | ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[3]]) + " |"
        for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in [*widths, 4]) + "|")
    return "\n".join(lines)


def verdicts(figures: Iterable[Figure]) -> str:
    """What must be reached, alone: one line each."""
    aimed = [figure for figure in figures if figure.target is not None]
    return "\n".join(f"{figure.verdict.ljust(24)} {figure.name}: {figure.shown}" for figure in aimed)
