"""Whether the database works for this worker: two events an outage, one an error, and patience while it lasts."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from cairnq.db.fault import Fault
from cairnq.db.sqlstate import classify, sqlstate_of
from cairnq.pure.clock import Clock
from cairnq.pure.errors import ConnectError, StoreClosed
from cairnq.run.emit import Emit

T = TypeVar("T")
FIRST_RETRY_S = 0.1
LAST_RETRY_S = 2.0


def retry_delay_s(failures: int) -> float:
    """Seconds before the next try after `failures` (from 1) in a row: doubling, with jitter, so that workers part."""
    window = min(LAST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(failures - 1, 16))
    return window * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret


class Outage:
    """One per worker, for all its threads. Everybody who uses the database tells; `database.*` comes at the edges.

    For whoever counts, `statement.failed` comes with each error.

    An unreachable database is one outage for all operations. Any other refusal (a missing right, say) concerns the
    operation that met it, and ends when that operation works again.
    """

    _UNREACHABLE = "*"

    def __init__(self, emit: Emit, clock: Clock) -> None:
        self._emit = emit
        self._clock = clock
        self._since: dict[str, float] = {}
        self._recovered_at = float("-inf")
        self._lock = threading.Lock()

    @property
    def is_on(self) -> bool:
        return bool(self._since)

    @staticmethod
    def is_of_database(error: Exception) -> bool:
        """Whether it came from the database or the way there. Anything else is a bug of ours and must surface."""
        return (
            isinstance(error, ConnectError)
            or sqlstate_of(error) is not None
            or (not isinstance(error, StoreClosed) and classify(error) is not Fault.BUG)
        )

    def failed(self, error: Exception, operation: str, *, asked_at: float) -> None:
        """`asked_at`: when it went out. What was asked in an outage and fails after it does not begin another."""
        self._emit("statement.failed", operation=operation, kind=type(error).__name__)
        scope = self._UNREACHABLE if classify(error.__cause__ or error) is Fault.GONE else operation
        with self._lock:
            if scope in self._since or asked_at < self._recovered_at:
                return
            self._since[scope] = self._clock()
        self._emit("database.failed", operation=operation, error=error)

    def worked(self, operation: str) -> None:
        if not self._since:
            return
        with self._lock:
            ended = [self._since.pop(scope) for scope in (self._UNREACHABLE, operation) if scope in self._since]
            if ended:
                self._recovered_at = self._clock()
        for began in ended:
            self._emit("database.recovered", operation=operation, after_s=round(self._recovered_at - began, 3))

    async def patiently(
        self, ask: Callable[[], Awaitable[T]], operation: str, *, going_on: Callable[[], bool] = lambda: True
    ) -> T:
        """The answer, however long the database is away. `going_on` is asked between tries and may raise."""
        failures = 0
        while True:
            asked_at = self._clock()
            try:
                answer = await ask()
            except Exception as error:
                if not self.is_of_database(error) or not going_on():
                    raise
                failures += 1
                self.failed(error, operation, asked_at=asked_at)
                await asyncio.sleep(retry_delay_s(failures))
                if not going_on():
                    raise
            else:
                self.worked(operation)
                return answer
