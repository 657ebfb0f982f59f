"""One handler call: the attempts it runs (one, or up to N of a batch), and what may cut it short."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from cairnq.run.attempt import Attempt

if TYPE_CHECKING:
    from cairnq.run.context import TaskContext
    from cairnq.run.registry import Handler


class Cut(StrEnum):
    """Why a call was told to end before it wanted to."""

    LOST = "lost"  # no attempt of it is held any more
    TIMEOUT = "timeout"  # it outran max_run_ms
    DRAIN = "drain"  # the worker is going away


class Ended(NamedTuple):
    """How a call came back: with a value, or with what it raised."""

    value: Any = None
    error: BaseException | None = None


class Phase(StrEnum):
    WAITING = "waiting"  # held, not started
    RUNNING = "running"
    RETURNED = "returned"


class Call:
    """Counts as one against every ceiling until its handler has really returned, whatever was settled before."""

    __slots__ = (
        *("attempts", "began_at", "bytes", "contexts", "cut"),
        *("handler", "is_ahead", "phase", "task", "waiting_since"),
    )

    def __init__(
        self, handler: Handler, attempts: list[Attempt], waiting_since: float, *, is_ahead: bool = False
    ) -> None:
        """`is_ahead`: it was claimed while all slots were taken."""
        self.handler = handler
        self.attempts = attempts
        self.bytes = _bytes_of(attempts)
        self.contexts: list[TaskContext] = []
        self.cut: Cut | None = None
        self.phase = Phase.WAITING
        self.waiting_since = waiting_since
        self.is_ahead = is_ahead
        self.began_at: float | None = None
        self.task: asyncio.Task[None] | None = None
        for attempt in attempts:
            attempt.call = self

    @property
    def has_returned(self) -> bool:
        return self.phase is Phase.RETURNED

    def drop_lost(self) -> None:
        """Before the start: a batch goes without what was lost while it waited."""
        for attempt in self.attempts:
            if attempt.lost:
                self.attempts = [attempt for attempt in self.attempts if not attempt.lost]
                self.bytes = _bytes_of(self.attempts)
                break

    def begin(self, now: float) -> None:
        """The handler is called next. Raises `CancelledError` where the call was cut short before this moment."""
        if self.cut is not None:
            raise asyncio.CancelledError
        self.began_at = now
        for attempt in self.attempts:
            if attempt.slot is not None:
                attempt.start(now)

    def cut_short(self, why: Cut) -> None:
        """Cancel the handler. A plain function on a thread cannot be: it learns from its context, or not at all.

        One that has not begun is left to `begin`: a task that is cancelled before its first step never takes it.
        """
        if self.cut is None:
            self.cut = why
            if self.task is not None and self.began_at is not None:
                self.task.cancel()

    def seal(self) -> None:
        """Whatever the handler left behind can write nothing through its contexts."""
        for context in self.contexts:
            context.seal()


def arguments(handler: Handler, contexts: Sequence[Any]) -> tuple[Any, ...]:
    """What the handler's function is called with."""
    if handler.batch is not None:
        return (list(contexts),)
    return (contexts[0], handler.payload(contexts[0].payload)) if handler.takes_payload else (contexts[0],)


def _bytes_of(attempts: list[Attempt]) -> int:
    if len(attempts) == 1:
        return attempts[0].payload_bytes
    return sum([attempt.payload_bytes for attempt in attempts])
