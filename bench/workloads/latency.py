"""How soon a worker picks a task up: from the call of submit to the start of the handler, at idle and at half load."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from bench import floors, notes
from bench.comparing import compared
from bench.counters import Observer
from bench.figures import Figure, of_runs
from bench.session import Session, folder
from bench.systems import all_systems as systems
from bench.systems.base import System, Work
from bench.systems.ours import OURS
from bench.together import Standing, Wanted, standing

PERCENTS = (50, 95, 99)
APART_MS = 400.0
"""Between two submits to the same worker; those to the others lie in between."""
SETTLE_S = 3.0
"""Seconds until start-up, self-tests of LISTEN included, is over."""
ENDLESS = 10**9
WAIT_S = 20.0
IDLE, HALF = "pick-up by an idle worker", "pick-up at half load"
MUST = 1.0


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds by percent."""

    took: Mapping[int, float]
    load: str

    def __str__(self) -> str:
        return ", ".join(f"p{percent} {value:.2f} ms" for percent, value in self.took.items()) + f" ({self.load})"


def measure(session: Session) -> Iterator[Figure]:
    idle: dict[str, list[Latency]] = {}
    for number in range(1, session.rounds + 1):
        limit = SETTLE_S + 120 + _samples(session) * APART_MS / 1000
        found = session.attempt(f"{IDLE}, all together, run {number}", partial(_idle, session), limit)
        for name, latency in (found or {}).items():
            idle.setdefault(name, []).append(latency)
    yield from _figures(IDLE, idle, {50: MUST, 95: MUST})
    seconds = 0.8 if session.quick else 3.0
    steps = {system.name: partial(_half_load, session, system, seconds) for system in session.systems}
    yield from _figures(HALF, session.rounds_of(HALF, steps), {})


def _figures(what: str, found: Mapping[str, list[Latency]], musts: Mapping[int, float]) -> Iterator[Figure]:
    for percent in PERCENTS:
        runs = {name: [one.took[percent] for one in latencies] for name, latencies in found.items()}
        name = f"{what}, p{percent}"
        for peer in systems.PEERS:
            must = musts.get(percent) if peer is systems.GRAPHILE else None
            yield from compared(name, runs, OURS.name, peer.name, must, unit="ms", better="lower")
        for system, values in runs.items():
            yield of_runs(f"{name}: {system}", values, "ms", found[system][-1].load)


def _samples(session: Session) -> int:
    return 10 if session.quick else 100


def _idle(session: Session) -> dict[str, Latency]:
    """Every system has its turn in each period, so that all are measured in the same moments."""
    wanted = [Wanted(system.name, system, "pick_up") for system in session.systems]
    wanted.append(Wanted("floor: a listener that claims", floors.BARE, "pick_up", tables_of=OURS))
    samples = _samples(session)
    with standing(session, wanted) as all_up, ExitStack() as stack:
        clients = []
        start = time.monotonic() + SETTLE_S + 0.3 * len(all_up)
        for place, up in enumerate(all_up):
            submitter = OURS if up.system is floors.BARE else up.system
            moment = round((start + place * APART_MS / 1000 / len(all_up)) * 1e9)
            asked = {"count": samples, "seconds": 120.0, "every_ms": APART_MS, "start_ns": moment}
            clients.append(stack.enter_context(submitter.client(up.dsn, **asked)))
        for client in clients:
            client.say("go")
        for client in clients:
            client.line()
        return {up.name: _latency(_arrived(up, samples), f"{samples} submits") for up in all_up}


def _arrived(up: Standing, samples: int) -> list[int]:
    """The client's first submit, which warms it, is none of them."""
    deadline = time.monotonic() + WAIT_S
    while notes.count(up.notes) <= samples:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{up.name} picked {notes.count(up.notes)} of {samples + 1} tasks up")
        time.sleep(0.05)
    return notes.numbers(up.notes)[1:]


def _half_load(session: Session, system: System, seconds: float) -> Latency:
    """Submits at half the rate that one client and one worker process sustain together, found just before."""
    with session.database(system) as dsn, folder() as noted, Observer(session.server, dsn) as observer:
        workers = system.workers(dsn, system.waiting, Work(noted, "pick_up"))
        try:
            at_most = system.submit(dsn, count=ENDLESS, seconds=seconds / 2)
            _until_empty(system, observer)
            before = notes.count(noted)
            sustained = before / (at_most["seconds"])
            rate = min(sustained, at_most["count"] / at_most["seconds"]) / 2
            asked = {"count": round(rate * seconds), "seconds": 2 * seconds, "every_ms": 1000 / rate}
            said = system.submit(dsn, **asked)
            _until_empty(system, observer)
        finally:
            for worker in workers:
                worker.end()
        return _latency(notes.numbers(noted)[before + 1 :], f"{said['count'] / said['seconds']:,.0f} submits a second")


def _until_empty(system: System, observer: Observer) -> None:
    deadline = time.monotonic() + WAIT_S
    while observer.ask(system.left):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the queue was not empty after {WAIT_S:.0f} s")
        time.sleep(0.05)


def _latency(microseconds: list[int], load: str) -> Latency:
    return Latency({percent: notes.percentile(microseconds, percent) / 1000 for percent in PERCENTS}, load)
