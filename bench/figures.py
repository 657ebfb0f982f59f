"""A measured figure, what it must reach, and the table of all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Figure:
    """`target` None: for information. `detail`: the numbers behind it."""

    name: str
    value: float
    unit: str
    detail: str
    target: float | None = None
    better: Literal["lower", "higher"] = "lower"

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
        return f"{sign} {self.target:g} {'reached' if self.reached else 'NOT REACHED'}"


def table(figures: Iterable[Figure]) -> str:
    """Markdown; ratios first, then what must be reached, then the rest."""
    ordered = sorted(figures, key=lambda figure: (figure.unit != "x", figure.target is None))
    rows = [("figure", "value", "must be", "from")]
    rows += [(f.name, f"{f.value:.3g} {f.unit}".replace(" x", " x"), f.verdict, f.detail) for f in ordered]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        "| " + " | ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[3]]) + " |"
        for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in [*widths, 4]) + "|")
    return "\n".join(lines)
