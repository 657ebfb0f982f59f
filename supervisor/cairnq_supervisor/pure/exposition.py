"""Prometheus' text format, version 0.0.4, as its official Python client writes it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from cairnq_supervisor.pure.printable import printable

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sample:
    """`suffix` is what a histogram's parts add to the family's name."""

    labels: Labels
    value: float
    suffix: str = ""


@dataclass(slots=True)
class Family:
    """A metric: its name (a counter's ends in _total), kind, one sentence, and samples."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    samples: list[Sample] = field(default_factory=list)

    def add(self, value: float | None, **labels: str) -> None:
        """None: unknown now, so that no sample stands for it."""
        if value is not None:
            self.samples.append(Sample(_readable(labels), value))

    def add_histogram(self, bounds: Sequence[float], counts: Sequence[int], total: float, **labels: str) -> None:
        """`counts` by bucket, not cumulated, the last for what is above all `bounds`; `total`: their sum."""
        cumulated, labels = 0, _readable(labels)
        for bound, count in zip([*bounds, math.inf], counts, strict=True):
            cumulated += count
            self.samples.append(Sample({**labels, "le": number(bound)}, cumulated, "_bucket"))
        self.samples.append(Sample(labels, cumulated, "_count"))
        self.samples.append(Sample(labels, total, "_sum"))


def text(families: Iterable[Family]) -> str:
    """The whole page. A family without a sample keeps its two lines: it exists, and nothing happened yet."""
    lines: list[str] = []
    for family in families:
        lines.append(f"# HELP {family.name} {_escaped(family.help)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        lines += [_line(family.name, sample) for sample in family.samples]
    return "\n".join([*lines, ""])


def number(value: float) -> str:
    """As Go writes a float: exponents from a million on."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    written = repr(float(value))
    dot = written.find(".")
    if value > 0 and dot > 6:
        mantissa = f"{written[0]}.{written[1:dot]}{written[dot + 1 :]}".rstrip("0.")
        return f"{mantissa}e+{dot - 1:02d}"
    return "NaN" if math.isnan(value) else written


def _readable(labels: dict[str, str]) -> dict[str, str]:
    """Strangers' text spelt out: people read the page with curl on a terminal, and names with their dashboards."""
    return {key: printable(value) for key, value in labels.items()}


def _line(name: str, sample: Sample) -> str:
    labels = ",".join(f'{key}="{_escaped(value, quotes=True)}"' for key, value in sorted(sample.labels.items()))
    return f"{name}{sample.suffix}{'{' + labels + '}' if labels else ''} {number(sample.value)}"


def _escaped(value: str, *, quotes: bool = False) -> str:
    value = value.replace("\\", "\\\\").replace("\n", "\\n")
    return value.replace('"', '\\"') if quotes else value
