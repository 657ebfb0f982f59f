"""The life of a seat and of the fleet, each one table of (state, event) -> (state, actions), complete as a rectangle.

A seat is a place for one child process: the keeper's, or number n of a queue's workers. Two facts stand beside the
state and reach the table through the choice of event: whether the seat is still wanted (EXITED or ENDED) and whether
the fleet is quiesced (READY or READY_QUIESCED).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class SeatState(StrEnum):
    STARTING = "starting"  # forked, not ready yet; holds nothing, for a child claims only once it is admitted
    READY = "ready"
    QUIESCING = "quiescing"  # claims nothing, runs on
    DRAINING = "draining"  # claims nothing, ends when it holds nothing
    KILLED = "killed"  # SIGKILL sent, not reaped yet
    BACKOFF = "backoff"  # no process; one is due
    FAILED = "failed"  # no process; given up
    STOPPED = "stopped"  # no process; none wanted


class SeatEvent(StrEnum):
    DUE = "due"  # a process is wanted here; others may have their turn first
    SPAWN = "spawn"  # fill the seat now
    SPAWN_FAILED = "spawn-failed"  # the system refused the fork
    READY = "ready"  # the child said so
    READY_QUIESCED = "ready-quiesced"  # the child said so, and the fleet is to stay idle
    BOOT_TIMEOUT = "boot-timeout"
    QUIESCE = "quiesce"
    RESUME = "resume"
    DRAIN = "drain"
    DRAINED = "drained"  # the child said that it holds nothing and leaves
    STUCK = "stuck"  # the child said that it holds calls which it cannot end
    DRAIN_TIMEOUT = "drain-timeout"
    KILL = "kill"
    EXITED = "exited"  # reaped, the seat is wanted
    ENDED = "ended"  # reaped, the seat is not wanted any more
    GIVE_UP = "give-up"


class SeatAction(StrEnum):
    FORK = "fork"
    ADMIT = "admit"  # tell the child to begin
    QUIESCE = "quiesce"
    RESUME = "resume"
    DRAIN = "drain"
    KILL = "kill"  # SIGKILL to the process group
    SETTLE = "settle"  # what it held is the keeper's now


class SeatStep(NamedTuple):
    state: SeatState
    actions: tuple[SeatAction, ...] = ()


LIVE = frozenset({SeatState.STARTING, SeatState.READY, SeatState.QUIESCING, SeatState.DRAINING, SeatState.KILLED})
"""The states in which a process exists."""

_S, _E, _A = SeatState, SeatEvent, SeatAction
_KILL = SeatStep(_S.KILLED, (_A.KILL,))
_LOST = SeatStep(_S.BACKOFF, (_A.SETTLE,))
_GONE = SeatStep(_S.STOPPED, (_A.SETTLE,))
_NONE = SeatStep(_S.STOPPED)
_DRAIN = SeatStep(_S.DRAINING, (_A.DRAIN,))
_FORK = SeatStep(_S.STARTING, (_A.FORK,))

_MOVES: Mapping[SeatState, Mapping[SeatEvent, SeatStep]] = {
    _S.STOPPED: {_E.DUE: SeatStep(_S.BACKOFF), _E.SPAWN: _FORK},
    _S.STARTING: {
        _E.SPAWN_FAILED: SeatStep(_S.BACKOFF, (_A.SETTLE,)),
        _E.READY: SeatStep(_S.READY, (_A.ADMIT,)),
        _E.READY_QUIESCED: SeatStep(_S.QUIESCING, (_A.QUIESCE, _A.ADMIT)),
        _E.BOOT_TIMEOUT: _KILL,
        _E.DRAIN: _KILL,
        _E.KILL: _KILL,
        _E.EXITED: _LOST,
        _E.ENDED: _GONE,
    },
    _S.READY: {
        _E.QUIESCE: SeatStep(_S.QUIESCING, (_A.QUIESCE,)),
        _E.DRAIN: _DRAIN,
        _E.KILL: _KILL,
        _E.EXITED: _LOST,
        _E.ENDED: _GONE,
    },
    _S.QUIESCING: {
        _E.RESUME: SeatStep(_S.READY, (_A.RESUME,)),
        _E.DRAIN: _DRAIN,
        _E.KILL: _KILL,
        _E.EXITED: _LOST,
        _E.ENDED: _GONE,
    },
    _S.DRAINING: {
        _E.STUCK: _KILL,
        _E.DRAIN_TIMEOUT: _KILL,
        _E.KILL: _KILL,
        _E.EXITED: _LOST,
        _E.ENDED: _GONE,
    },
    _S.KILLED: {_E.EXITED: _LOST, _E.ENDED: _GONE},
    _S.BACKOFF: {
        _E.SPAWN: _FORK,
        _E.DRAIN: _NONE,
        _E.KILL: _NONE,
        _E.GIVE_UP: SeatStep(_S.FAILED),
    },
    _S.FAILED: {_E.SPAWN: _FORK, _E.DRAIN: _NONE, _E.KILL: _NONE},
}

SEAT_TABLE: Mapping[tuple[SeatState, SeatEvent], SeatStep] = {
    (state, event): _MOVES[state].get(event, SeatStep(state)) for state in SeatState for event in SeatEvent
}
"""Every cell. One that is not named above changes nothing: its event comes too late, or tells what is known."""


class FleetState(StrEnum):
    STARTING = "starting"  # not every seat of the first generation has been ready yet
    RUNNING = "running"
    DRAINING = "draining"  # workers leave
    CLOSING = "closing"  # no worker is left; the keeper finishes
    STOPPED = "stopped"


class FleetEvent(StrEnum):
    ALL_READY = "all-ready"
    QUIESCE = "quiesce"
    RESUME = "resume"
    DRAIN = "drain"
    HASTEN = "hasten"
    HOPELESS = "hopeless"  # the first generation cannot stand up
    WORKERS_GONE = "workers-gone"  # no worker lives and what they held is settled, or had its time
    KEEPER_GONE = "keeper-gone"


class FleetAction(StrEnum):
    ANNOUNCE = "announce"
    QUIESCE = "quiesce"
    RESUME = "resume"
    DRAIN = "drain"
    HASTEN = "hasten"  # the drain's deadline is now
    GIVE_UP = "give-up"
    DISMISS_KEEPER = "dismiss-keeper"
    STOP = "stop"


class FleetStep(NamedTuple):
    state: FleetState
    actions: tuple[FleetAction, ...] = ()


_F, _FE, _FA = FleetState, FleetEvent, FleetAction
_FLEET_DRAIN = FleetStep(_F.DRAINING, (_FA.DRAIN,))
_FLEET_HASTEN = FleetStep(_F.DRAINING, (_FA.DRAIN, _FA.HASTEN))
_FLEET_GIVE_UP = FleetStep(_F.DRAINING, (_FA.GIVE_UP, _FA.DRAIN, _FA.HASTEN))

_FLEET_MOVES: Mapping[FleetState, Mapping[FleetEvent, FleetStep]] = {
    _F.STARTING: {
        _FE.ALL_READY: FleetStep(_F.RUNNING, (_FA.ANNOUNCE,)),
        _FE.QUIESCE: FleetStep(_F.STARTING, (_FA.QUIESCE,)),
        _FE.RESUME: FleetStep(_F.STARTING, (_FA.RESUME,)),
        _FE.DRAIN: _FLEET_DRAIN,
        _FE.HASTEN: _FLEET_HASTEN,
        _FE.HOPELESS: _FLEET_GIVE_UP,
    },
    _F.RUNNING: {
        _FE.QUIESCE: FleetStep(_F.RUNNING, (_FA.QUIESCE,)),
        _FE.RESUME: FleetStep(_F.RUNNING, (_FA.RESUME,)),
        _FE.DRAIN: _FLEET_DRAIN,
        _FE.HASTEN: _FLEET_HASTEN,
    },
    _F.DRAINING: {
        _FE.HASTEN: FleetStep(_F.DRAINING, (_FA.HASTEN,)),
        _FE.WORKERS_GONE: FleetStep(_F.CLOSING, (_FA.DISMISS_KEEPER,)),
    },
    _F.CLOSING: {_FE.KEEPER_GONE: FleetStep(_F.STOPPED, (_FA.STOP,))},
    _F.STOPPED: {},
}

FLEET_TABLE: Mapping[tuple[FleetState, FleetEvent], FleetStep] = {
    (state, event): _FLEET_MOVES[state].get(event, FleetStep(state)) for state in FleetState for event in FleetEvent
}
"""Every cell, completed as `SEAT_TABLE` is."""
