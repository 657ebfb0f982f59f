"""How fast no-op tasks are drained, by one worker process and by two, beside peers and the bare statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from bench import floors
from bench.comparing import Runs, best_of, compared, name
from bench.draining import Asked, Drained, drain, middle
from bench.figures import Figure, of_runs
from bench.session import Session, fastest
from bench.systems import all_systems as systems
from bench.systems.base import Setting, System
from bench.systems.ours import BEST, DEFAULTS, FORGET, OURS

SECONDS = 2.5
QUICK_SECONDS = 0.5
PROCESSES = (1, 2)


def measure(session: Session) -> Iterator[Figure]:
    for processes in PROCESSES[1:] if session.quick else PROCESSES:
        yield from _with(session, processes)


def _with(session: Session, processes: int) -> Iterator[Figure]:
    steps: dict[str, Callable[[], Drained]] = {
        name(system, setting): partial(_one, session, system, setting, processes)
        for system in session.systems
        for setting in system.settings
        if setting.best or not session.quick
    }
    steps |= floors.drains(session, processes, QUICK_SECONDS if session.quick else SECONDS)
    what = f"drain of no-op tasks, {'one worker process' if processes == 1 else f'{processes} worker processes'}"
    drained = session.rounds_of(what, steps)
    rates = {key: [one.rate for one in found] for key, found in drained.items()}
    yield from _ratios(what, rates, aims=processes == PROCESSES[-1])
    for key, found in drained.items():
        yield of_runs(f"{what}: {key}", rates[key], "/s", middle(found).costs, better="higher")


def _one(session: Session, system: System, setting: Setting, processes: int) -> Drained:
    seconds = QUICK_SECONDS if session.quick else SECONDS
    count = round(setting.pace * seconds * (1.0 if processes > 1 else 0.8))
    return drain(session, system, setting, Asked(count, processes=processes))


def _ratios(what: str, rates: Runs, *, aims: bool) -> Iterator[Figure]:
    defaults, best, forget = (name(OURS, setting) for setting in (DEFAULTS, BEST, FORGET))
    for mine, peer, must in (
        (defaults, systems.PYPI_CAIRNQ, 10),
        (defaults, systems.PROCRASTINATE, 8),
        (best, systems.PGQUEUER, 1.0),
        (best, systems.GRAPHILE, 0.5),
        (forget, systems.GRAPHILE, 0.6),
    ):
        yield from compared(what, rates, mine, best_of(rates, peer), must if aims else None)
    yield from compared(what, rates, best, fastest(rates, floors.NAMES))
