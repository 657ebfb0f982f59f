"""Runs the workloads and prints the table; a run of them all, and not quick, writes it to bench/RESULTS.md too."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench import beats, cost, depth, draining, embedded, idle, submitting
from bench.figures import Figure, table
from bench.server import SETTINGS, private_server, version_of
from tests.support.cluster import Cluster
from tests.support.peers import PeerUnavailable

RESULTS = Path(__file__).with_name("RESULTS.md")
WORKLOADS: dict[str, Callable[..., Iterator[Figure]]] = {
    "cost": cost.measure,
    "depth": depth.measure,
    "idle": idle.measure,
    "submitting": submitting.measure,
    "draining": draining.measure,
    "beats": beats.measure,
    "embedded": embedded.measure,
}


def main() -> int:
    options = _parse(sys.argv[1:])
    quick = bool(os.environ.get("QUICK")) or options.quick
    with private_server(options.postgres) as server:
        figures, skipped = _run(server, options.workloads or list(WORKLOADS), quick=quick)
        heading = _heading(server, quick=quick)
    text = f"{heading}\n{table(figures)}\n" + "".join(f"\nLeft out: {reason}\n" for reason in skipped)
    print(text)
    if not options.workloads and not quick:
        RESULTS.write_text(f"# Results of `make bench`\n\n{text}")
    return 1 if any(figure.reached is False for figure in figures) else 0


def _run(server: Cluster, names: list[str], *, quick: bool) -> tuple[list[Figure], list[str]]:
    figures: list[Figure] = []
    skipped: list[str] = []
    for name in names:
        start = time.monotonic()
        try:
            for figure in WORKLOADS[name](server, quick=quick):
                print(f"{figure.value:10.3f} {figure.unit:3} {figure.name}", file=sys.stderr, flush=True)
                figures.append(figure)
        except PeerUnavailable as error:
            skipped.append(f"the rest of {name}: {error}")
        print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return figures, skipped


def _heading(server: Cluster, *, quick: bool) -> str:
    settings = ", ".join(f"{name}={value}" for name, value in SETTINGS.items())
    return (
        f"{datetime.now(UTC):%Y-%m-%d}{', QUICK=1' if quick else ''}. PostgreSQL {version_of(server)}, its clients on "
        f"the same {os.cpu_count()} cores (load {os.getloadavg()[2]:.1f}), Python {platform.python_version()}.\n"
        f"{settings}.\n\n"
        "Ratios come first. Rates and latencies depend on the machine and on what else it does; ratios of submits come "
        "from short slices that\ntake turns. WAL and buffers are exact.\n"
    )


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "workloads", nargs="*", metavar="WORKLOAD", help=f"some of {', '.join(WORKLOADS)}; all by default"
    )
    parser.add_argument("--quick", action="store_true", help="under three minutes; so does QUICK=1")
    parser.add_argument(
        "--postgres", choices=("system", "wheel", "all"), default="all", help="all: the oldest there is"
    )
    options = parser.parse_args(arguments)
    if unknown := set(options.workloads) - set(WORKLOADS):
        parser.error(f"unknown workload {', '.join(sorted(unknown))}; there are {', '.join(WORKLOADS)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
