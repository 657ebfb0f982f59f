"""What the supervisor and its children say to each other, the keeper's business apart: one frozen class a message."""

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


# Between the gateway and the supervisor.


@dataclass(frozen=True, slots=True)
class Ask(Message):
    """The gateway wants to know how things stand; with another `piece` than 0, what it was not told at once."""

    number: int
    piece: int


@dataclass(frozen=True, slots=True)
class Told(Message):
    """How things stand: the status, the tallies by queue, the chronicle. `more`: there is another piece."""

    number: int
    document: dict[str, Any]
    more: bool


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
