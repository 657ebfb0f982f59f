"""One handler call: the attempts it runs (one, or up to N of a batch), and what may cut it short."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cairnq.pure.models import Task
from cairnq.run.attempt import Attempt
from cairnq.run.context import TaskContext
from cairnq.run.registry import Handler


class Cut(StrEnum):
    """Why a call was told to end before it wanted to."""

    LOST = "lost"  # no attempt of it is held any more
    TIMEOUT = "timeout"  # it outran max_run_ms
    DRAIN = "drain"  # the worker is going away


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call came back: with a value, or with what it raised."""

    value: Any = None
    error: BaseException | None = None


class Phase(StrEnum):
    WAITING = "waiting"  # held, not started
    RUNNING = "running"
    RETURNED = "returned"


class Call:
    """Counts as one against every ceiling until its handler has really returned, whatever was settled before."""

    __slots__ = ("attempts", "bytes", "contexts", "cut", "deadline", "handler", "phase", "task", "waiting_since")

    def __init__(
        self, handler: Handler, attempts: list[Attempt], contexts: list[TaskContext], waiting_since: float
    ) -> None:
        self.handler = handler
        self.attempts = attempts
        self.contexts = contexts
        self.bytes = sum(attempt.payload_bytes for attempt in attempts)
        self.cut: Cut | None = None
        self.deadline = float("inf")
        self.phase = Phase.WAITING
        self.waiting_since = waiting_since
        self.task: asyncio.Task[Ended] | None = None
        for attempt in attempts:
            attempt.call = self

    @property
    def is_suspect(self) -> bool:
        """On its last attempt, after its worker died under an earlier one: it may be what killed it."""
        return any(_died_before(attempt.task) for attempt in self.attempts)

    def drop_lost(self) -> None:
        """Before the start: a batch goes without what was lost while it waited."""
        if any(attempt.lost for attempt in self.attempts):
            self.contexts = [c for c, a in zip(self.contexts, self.attempts, strict=True) if not a.lost]
            self.attempts = [attempt for attempt in self.attempts if not attempt.lost]
            self.bytes = sum(attempt.payload_bytes for attempt in self.attempts)

    def cut_short(self, why: Cut) -> None:
        """Cancel the handler. A plain function on a thread cannot be: it learns from its context, or not at all."""
        if self.cut is None:
            self.cut = why
            if self.task is not None:
                self.task.cancel()

    def seal(self) -> None:
        """Whatever the handler left behind can write nothing through its contexts."""
        for context in self.contexts:
            context.seal()


def _died_before(task: Task) -> bool:
    crashed = isinstance(task.error, dict) and task.error.get("code") == "worker_crashed"
    return crashed and task.attempt >= task.max_attempts
