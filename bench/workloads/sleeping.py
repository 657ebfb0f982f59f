"""Handlers that sleep 5 ms, 50 at a time in one process: 10,000 a second at most, or what the processor allows.

An event loop with nothing but such sleeps does not reach them: its timers are late. What it does is shown as the floor.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial

from bench.comparing import beside_peers
from bench.draining import Asked, Drained, drain, middle
from bench.figures import Figure, of_runs
from bench.process import Process
from bench.profiling import profile
from bench.session import Session, ratios
from bench.systems.ours import OURS

CONCURRENCY = 50
LIMIT = 10_000
"""A second, of 50 at a time that take 5 ms."""
MUST = 0.9
FLOOR = "floor: a bare loop with nothing but the sleeps"
WHAT = f"drain of 5 ms sleeping handlers, {CONCURRENCY} at a time, one process"


def measure(session: Session) -> Iterator[Figure]:
    seconds = 0.5 if session.quick else 2.5
    steps: dict[str, Callable[[], Drained]] = {
        system.name: partial(
            drain,
            session,
            system,
            system.best,
            Asked(
                round(min(LIMIT * 0.8, system.best.pace) * seconds),
                handler="sleep",
                options=system.concurrency_of(CONCURRENCY),
            ),
        )
        for system in session.systems
    }
    steps[FLOOR] = partial(_bare, round(LIMIT * seconds))
    drained = session.rounds_of(WHAT, steps)
    rates = {key: [one.rate for one in found] for key, found in drained.items()}
    floor = rates.pop(FLOOR, [])
    yield from beside_peers(WHAT, rates, OURS.name, {})
    if mine := drained.get(OURS.name):
        shares = [one.rate / min(LIMIT, 1e6 / one.worker_us) for one in mine]
        detail = f"{middle(mine).rate:,.0f} a second; the processor allows {1e6 / middle(mine).worker_us:,.0f}"
        name = f"{WHAT}: ours beside {LIMIT:,} a second, or the processor's limit where that is lower"
        yield of_runs(name, shares, "x", detail, target=MUST, better="higher")
        if floor:
            beside = f"{WHAT}: ours beside a bare loop with nothing but the sleeps"
            yield of_runs(beside, ratios(rates[OURS.name], floor), "x", better="higher")
    count = 500 if session.quick else 10_000
    told = session.attempt(f"{WHAT}, profile", partial(profile, session, "sleep", CONCURRENCY, count))
    if told is not None:
        session.texts.append(f"Profile of our {WHAT} (cProfile itself takes a part of it):\n\n{told}")
    for key, found in drained.items():
        costs = "" if key == FLOOR else middle(found).costs
        yield of_runs(f"{WHAT}: {key}", [one.rate for one in found], "/s", costs, better="higher")


def _bare(count: int) -> Drained:
    spec = json.dumps({"concurrency": CONCURRENCY, "count": count})
    with Process("bare loop", [sys.executable, "-m", "bench.programs.sleepers", spec], {}) as process:
        return Drained(json.loads(process.line())["rate"], 0.0, 0.0, 0.0, 0.0)
