"""Which faults happen when: drawn from a seed, so that a run can be repeated. Nothing here happens to anybody."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

LEASE_S = 4.0
"""Of the fleet under torture: short, so that what must outlast a lease does so often."""

RATE = 2.5
"""Faults a second."""

_BRIEF, _LONG = (0.05, 0.6 * LEASE_S), (1.2 * LEASE_S, 2.4 * LEASE_S)
"""Seconds that a fault lasts: within a lease, or longer than one."""

_LONG_SHARE = 0.2


class Ability(StrEnum):
    """What this run can do beside signals and floods."""

    NETWORK = "network"  # a proxy stands before the server
    SERVER = "server"  # sessions of a server that can be ended, rows of it that can be locked
    FILE = "file"  # a file that can be locked
    CLOCK = "clock"  # libfaketime is here
    RESTART = "restart"  # a command that restarts the server was given
    PEER = "peer"  # a second host, which goes on while one is frozen


class Kind(StrEnum):
    """What is done to whom."""

    WORKER_KILL = "worker.kill"
    WORKER_STOP = "worker.stop"
    WORKER_TERM = "worker.term"  # a stray one, which must change nothing
    KEEPER_KILL = "keeper.kill"
    KEEPER_STOP = "keeper.stop"
    SUPERVISOR_KILL = "supervisor.kill"
    SUPERVISOR_STOP = "supervisor.stop"
    SUPERVISOR_DRAIN = "supervisor.drain"
    SUPERVISOR_QUIT = "supervisor.quit"
    SUPERVISOR_RELOAD = "supervisor.reload"
    SUPERVISOR_SCALE = "supervisor.scale"
    SUPERVISOR_QUIESCE = "supervisor.quiesce"
    HOST_FREEZE = "host.freeze"  # every process of it at once, as a virtual machine is suspended
    NETWORK_CUT = "network.cut"
    NETWORK_REFUSE = "network.refuse"
    NETWORK_DELAY = "network.delay"
    NETWORK_SWALLOW = "network.swallow"  # nothing arrives and nobody is told, as when a cable is pulled
    SESSIONS_END = "sessions.end"
    ROWS_LOCK = "rows.lock"
    FILE_LOCK = "file.lock"
    CLOCK_SHIFT = "clock.shift"
    SERVER_RESTART = "server.restart"
    FLOOD = "flood"


_SHARES: Mapping[Kind, tuple[int, Ability | None]] = {
    Kind.WORKER_KILL: (20, None),
    Kind.WORKER_STOP: (14, None),
    Kind.WORKER_TERM: (5, None),
    Kind.KEEPER_KILL: (6, None),
    Kind.KEEPER_STOP: (4, None),
    Kind.SUPERVISOR_KILL: (3, None),
    Kind.SUPERVISOR_STOP: (4, None),
    Kind.SUPERVISOR_DRAIN: (3, None),
    Kind.SUPERVISOR_QUIT: (1, None),
    Kind.SUPERVISOR_RELOAD: (2, None),
    Kind.SUPERVISOR_SCALE: (4, None),
    Kind.SUPERVISOR_QUIESCE: (3, None),
    Kind.HOST_FREEZE: (5, Ability.PEER),
    Kind.NETWORK_CUT: (7, Ability.NETWORK),
    Kind.NETWORK_REFUSE: (3, Ability.NETWORK),
    Kind.NETWORK_DELAY: (5, Ability.NETWORK),
    Kind.NETWORK_SWALLOW: (5, Ability.NETWORK),
    Kind.SESSIONS_END: (9, Ability.SERVER),
    Kind.ROWS_LOCK: (5, Ability.SERVER),
    Kind.FILE_LOCK: (8, Ability.FILE),
    Kind.CLOCK_SHIFT: (4, Ability.CLOCK),
    Kind.SERVER_RESTART: (1, Ability.RESTART),
    Kind.FLOOD: (4, None),
}
"""Of about a hundred faults, so many are of this kind; and what it takes."""

_CUTS_OFF: Mapping[Kind, float] = {Kind.HOST_FREEZE: 0.6, Kind.NETWORK_SWALLOW: 0.6, Kind.NETWORK_REFUSE: 0.4}
"""How many last longer than a lease, of those that part a holder from its leases and leave it running: what it still
believes in then is what the audit is about."""


@dataclass(frozen=True, slots=True)
class Fault:
    """`at` and `lasting` are seconds. `host` and `target` pick one of those that are there then; both lie in [0, 1)."""

    at: float
    kind: Kind
    host: float
    target: float
    lasting: float


def schedule(seed: int, seconds: float, abilities: Collection[Ability]) -> Sequence[Fault]:
    """The faults of a run, in their order. The same arguments give the same ones."""
    choice = random.Random(f"cairnq-torture-{seed}")  # noqa: S311 - to be repeated, not to be secret
    kinds = _dealt(choice, round(seconds * RATE), abilities)
    return [
        Fault(
            at=(number + choice.random()) / RATE,
            kind=kind,
            host=choice.random(),
            target=choice.random(),
            lasting=choice.uniform(*(_LONG if choice.random() < _CUTS_OFF.get(kind, _LONG_SHARE) else _BRIEF)),
        )
        for number, kind in enumerate(kinds)
    ]


def _dealt(choice: random.Random, count: int, abilities: Collection[Ability]) -> list[Kind]:
    """From a shuffled deck, so that no kind is missing from a long run. A short one sees each kind once first."""
    able = {kind: share for kind, (share, needs) in _SHARES.items() if needs is None or needs in abilities}
    hand: list[Kind] = list(able)
    choice.shuffle(hand)
    while len(hand) < count:
        deck = [kind for kind, share in able.items() for _ in range(share)]
        choice.shuffle(deck)
        hand += deck
    return hand[:count]
