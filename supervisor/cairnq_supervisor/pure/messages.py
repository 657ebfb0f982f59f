"""What the supervisor and its children say to each other: one frozen class a message. Their form is `pure.wire`'s."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Message:
    """The base of all messages. A `replaceable` one waits in an outbox at most once."""

    replaceable: ClassVar[bool] = False


# From the supervisor to a worker.


@dataclass(frozen=True, slots=True)
class Admit(Message):
    """The child is part of the fleet: begin. Until then it claims nothing."""


@dataclass(frozen=True, slots=True)
class Wake(Message):
    """There may be work: look now."""

    replaceable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Watched(Message):
    """Whether the keeper finds all work, so that you are woken and need not look by yourself."""

    watched: bool


@dataclass(frozen=True, slots=True)
class Quiesce(Message):
    """Claim nothing more; give back what has not started."""


@dataclass(frozen=True, slots=True)
class Resume(Message):
    """Claim again."""


@dataclass(frozen=True, slots=True)
class Drain(Message):
    """Leave: run out what was started until `deadline` (boottime seconds), then cancel and give back."""

    deadline: float


@dataclass(frozen=True, slots=True)
class LeasesChanged(Message):
    """A verdict or a cancel request was written into this worker's lease table."""

    replaceable: ClassVar[bool] = True


# From a worker to the supervisor.


@dataclass(frozen=True, slots=True)
class Drained(Message):
    """Every attempt is settled or given back, but for `unended` calls that can only end with their process."""

    unended: int


@dataclass(frozen=True, slots=True)
class Holding(Message):
    """This worker held nothing and now does: beats are needed. Said at most once in a sixth of a lease."""

    replaceable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Exhausting(Message):
    """After a wake this worker has its hands full: there may be work for another one of its queue."""

    replaceable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class BytesFreed(Message):
    """Payload bytes were freed while a worker waited for some. Said by who freed them, passed on to those that wait."""

    replaceable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Tallied(Message):
    """What became of this worker's tasks since its start, by name, as `pure.tally` encodes it."""

    names: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Overrun(Message):
    """A call outran max_run, was settled so, and does not end: only its process can be ended."""


@dataclass(frozen=True, slots=True)
class BootFailed(Message):
    """The child cannot become ready. `code` is the exit code it would mean for the whole supervisor."""

    code: int
    reason: str


# From the scout of a reload to the supervisor.


@dataclass(frozen=True, slots=True)
class Scouted(Message):
    """The new configuration and application are good (`reason` None), or why not.

    `http_host`: the number of the host that `http` names; None where there is none.
    """

    reason: str | None
    resource_queues: tuple[str, ...]
    http_host: str | None


# From the supervisor to the keeper.


@dataclass(frozen=True, slots=True)
class Lend(Message):
    """One worker's lease table comes with this message as a descriptor. Beat it when ordered; `lease` is seconds."""

    worker_id: str
    capacity: int
    lease: float


@dataclass(frozen=True, slots=True)
class TakeBack(Message):
    """Forget this worker's table: it left and holds nothing."""

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
    """The configuration was reloaded: these are the queues of this host, and the seconds after which tasks go."""

    queues: tuple[str, ...]
    retention: dict[str, Any]


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
class Queued(Message):
    """Something is due in this queue, as the database says. `still`: it was due at the look before as well."""

    queue: str
    still: bool = False


@dataclass(frozen=True, slots=True)
class Sampled(Message):
    """How much waits, by queue: due, running, ms for which the oldest due task has waited (or null), suspects."""

    queues: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Listening(Message):
    """Whether notifications are proved to arrive."""

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


# Between the gateway and the supervisor.


@dataclass(frozen=True, slots=True)
class Ask(Message):
    """The gateway wants to know how things stand."""

    number: int


@dataclass(frozen=True, slots=True)
class Told(Message):
    """How things stand: the status, the tallies by queue, the chronicle."""

    number: int
    document: dict[str, Any]


# From any child.


@dataclass(frozen=True, slots=True)
class Uses(Message):
    """Said before `Ready`: the resources of this worker's handlers, and how much of each the host has."""

    amounts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Grant(Message):
    """This unit of a resource is the worker's, once it holds the unit's lock."""

    resource: str
    unit: int


@dataclass(frozen=True, slots=True)
class AskBack(Message):
    """Begin no call with this unit any more, and give it back when those under way do not need it."""

    resource: str
    unit: int


@dataclass(frozen=True, slots=True)
class Returned(Message):
    """No call of this worker needs the unit; its lock is free."""

    resource: str
    unit: int


@dataclass(frozen=True, slots=True)
class Ready(Message):
    """The child has all that it needs."""


@dataclass(frozen=True, slots=True)
class Event(Message):
    """One event to render."""

    name: str
    fields: dict[str, Any] = field(default_factory=dict)


KINDS: dict[str, type[Message]] = {
    name: kind
    for name, kind in list(globals().items())
    if isinstance(kind, type) and issubclass(kind, Message) and kind is not Message
}
"""The whole vocabulary. (Not `__subclasses__()`: a class with slots is made twice.)"""
