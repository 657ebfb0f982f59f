"""The command line of `python -m bench`: which workloads run, for how long, and where their results go."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench import counters, report
from bench.figures import Figure, short
from bench.process import Process
from bench.server import private_server
from bench.session import Session, say
from bench.systems import all_systems
from bench.workloads.all_workloads import WORKLOADS
from tests.support.peers import PeerUnavailable

RESULTS = Path(__file__).with_name("RESULTS.md")
FULL_S, QUICK_S = 57 * 60, 165
"""Seconds after which no step begins any more. Installing the peers, which a fresh machine does once, comes before."""

EPILOG = """\
A run of all workloads that is not quick writes bench/RESULTS.md, anew after each workload. Any other run only prints:
figures of different hours cannot be compared. --out FILE writes those of any run to a file.

examples:
  make bench                                 # all, three runs each
  make bench QUICK=1                         # all, once, smaller
  make bench ARGS='--only drain,latency'     # two workloads, in full
  make bench ARGS='--only drain --runs 1'
"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    quick = bool(os.environ.get("QUICK")) or options.quick
    out = options.out or (RESULTS if not options.only and not quick else None)
    with private_server(options.postgres) as server:
        counters.prepare(server)
        rounds = options.runs or (1 if quick else 3)
        session = Session(server, all_systems.ALL, quick, rounds, 0.0)
        session.install()
        session.ends_at = time.monotonic() + (options.minutes * 60 if options.minutes else QUICK_S if quick else FULL_S)
        figures = _run(session, options.only or list(WORKLOADS), out)
        print(report.text(session, figures))
    return 1 if session.failures else 0  # what is not reached is told, and fails nothing


def _run(session: Session, names: Sequence[str], out: Path | None) -> list[Figure]:
    figures: list[Figure] = []
    for number, name in enumerate(names, start=1):
        start = time.monotonic()
        if start >= session.ends_at:
            session.failures.append(f"{name}: there was no time left for it")
            continue
        say(f"{name} ({number} of {len(names)})")
        try:
            _collect(figures, WORKLOADS[name], session)
        except PeerUnavailable as error:
            session.missing.append(f"the rest of {name}: {error}")
        except Exception as error:  # noqa: BLE001 - the border between a workload and the others
            session.failures.append(f"the rest of {name}: {type(error).__name__}: {error}")
            say(f"FAILED {name}: {error!r}")
        for process in list(Process.living):
            process.end()
        say(f"{name}: {time.monotonic() - start:.0f} s")
        if out is not None:
            rest = names[number:]
            report.write(
                out, report.text(session, figures, unfinished=f"it had yet to do {', '.join(rest)}" if rest else "")
            )
    return figures


def _collect(figures: list[Figure], measure: Callable[[Session], Iterator[Figure]], session: Session) -> None:
    for figure in measure(session):
        say(f"{short(figure.value):>10} {figure.unit:3} {figure.name} {figure.verdict}")
        figures.append(figure)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure our program, and its peers beside it, against a private PostgreSQL.",
        epilog=f"workloads: {', '.join(WORKLOADS)}\n\n{EPILOG}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", type=_names, metavar="NAME,...", help="these workloads, by default all")
    parser.add_argument("--quick", action="store_true", help="under three minutes; so does QUICK=1")
    parser.add_argument("--runs", type=int, metavar="N", help="runs of each step, by default 3, in a quick run 1")
    parser.add_argument("--minutes", type=float, metavar="M", help="begin no step after so long; what is left is named")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the results there, after each workload")
    parser.add_argument(
        "--postgres", choices=("system", "wheel", "all"), default="all", help="all: the oldest there is"
    )
    return parser.parse_args(arguments)


def _names(argument: str) -> list[str]:
    names = [name for name in argument.split(",") if name]
    if unknown := [name for name in names if name not in WORKLOADS]:
        raise argparse.ArgumentTypeError(f"no workload {', '.join(unknown)}; there are {', '.join(WORKLOADS)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
