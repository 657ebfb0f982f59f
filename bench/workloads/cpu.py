"""Handlers that use the processor for 1 ms, in two processes: what a system adds to work that is work."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench.comparing import beside_fastest, name, settings_of
from bench.draining import Asked, drain, middle
from bench.figures import Figure, of_runs
from bench.session import Session
from bench.systems.all_systems import PEERS
from bench.systems.ours import DEFAULTS, OURS

PROCESSES = 2
LIMIT = 1_000 * PROCESSES
WHAT = f"drain of 1 ms handlers that use the processor, {PROCESSES} processes"


def measure(session: Session) -> Iterator[Figure]:
    seconds = 0.5 if session.quick else 2.5
    steps = {
        name(system, setting): partial(
            drain,
            session,
            system,
            setting,
            Asked(round(min(LIMIT * 0.7, setting.pace) * seconds), handler="cpu", processes=PROCESSES),
        )
        for system in session.systems
        for setting in settings_of(system, quick=session.quick)
    }
    drained = session.rounds_of(WHAT, steps)
    rates = {key: [one.rate for one in found] for key, found in drained.items()}
    yield from beside_fastest(WHAT, rates, name(OURS, DEFAULTS), PEERS)
    for key, found in drained.items():
        yield of_runs(f"{WHAT}: {key}", rates[key], "/s", middle(found).costs, better="higher")
