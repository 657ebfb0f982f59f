"""What the supervisor and its keeper say to each other: one frozen class a message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from cairnq_supervisor.pure.messages import Message

# From the supervisor to the keeper.


@dataclass(frozen=True, slots=True)
class Lend(Message):
    """One worker's lease table comes with this message as a descriptor. Beat it when ordered; `lease` is seconds."""

    worker_id: str
    capacity: int
    lease: float


@dataclass(frozen=True, slots=True)
class LendBell(Message):
    """The bell of this worker, whose table was lent before, comes with this message: ring it for work of its queue."""

    worker_id: str
    queue: str


@dataclass(frozen=True, slots=True)
class TakeBack(Message):
    """Forget this worker's table and its bell: it left and holds nothing."""

    worker_id: str


@dataclass(frozen=True, slots=True)
class Beat(Message):
    """Renew the leases of these workers, for whom the supervisor vouched at `ordered_at` (boottime seconds)."""

    ordered_at: float
    worker_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Settle(Message):
    """This worker is dead and reaped: settle what its table (lent before) says, then sweep for what it does not say.

    `since` is the boottime instant of its death: a duty that a reborn keeper takes over is not begun anew. Sweeps go on
    until `horizon` seconds after it. `released`: the supervisor ended it for a cause outside its calls, so that no
    attempt is spent; except those of the tasks `overrun`, for whose calls' sake it was ended, past `max_run_ms`.
    """

    worker_id: str
    since: float
    horizon: float
    lease: float
    reason: str
    details: dict[str, Any]
    released: bool
    overrun: tuple[str, ...]
    max_run_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int


@dataclass(frozen=True, slots=True)
class Policy(Message):
    """The configuration was reloaded: these are the queues of this host, and the seconds after which tasks go.

    `lease`: seconds, the shortest of any worker there is.
    """

    queues: tuple[str, ...]
    retention: dict[str, Any]
    lease: float


@dataclass(frozen=True, slots=True)
class Ping(Message):
    """Say that your loop turns."""

    replaceable: ClassVar[bool] = True


# From the keeper to the supervisor.


@dataclass(frozen=True, slots=True)
class Pong(Message):
    """My loop turns."""

    replaceable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Unlent(Message):
    """No descriptor was left for this worker's table or its bell: lend both again. `is_kept`: its table is here."""

    worker_id: str
    is_kept: bool


@dataclass(frozen=True, slots=True)
class Sampled(Message):
    """How much waits, by queue: due, running, ms for which the oldest due task has waited (or null), suspects."""

    queues: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Listening(Message):
    """Whether notifications are proved to arrive, and the keeper sees what none tells of: nobody need poll."""

    delivers: bool


@dataclass(frozen=True, slots=True)
class Beaten(Message):
    """One ordered beat is over. `changed`: the workers in whose tables it wrote a verdict or a cancel request."""

    ordered_at: float
    renewed: int
    unsure: int
    lost: int
    latency_ms: int
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Settled(Message):
    """The table of a dead worker is settled for the first time; the sweeps go on. `crashed`: its calls, by name.

    `requeued`: an attempt was spent, and others are left; `failed`: none is. `released`: given back unspent, and of
    these `suspects` are marked, for any of them may have killed it.
    """

    worker_id: str
    requeued: int
    failed: int
    released: int
    suspects: int
    canceled: int
    crashed: dict[str, Any]


@dataclass(frozen=True, slots=True)
class DutyDone(Message):
    """Nothing of this dead worker can turn up any more."""

    worker_id: str
