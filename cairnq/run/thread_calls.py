"""Calls of plain functions: each waits for a thread, runs on it, and comes back to the loop when it has returned."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context
from functools import partial

from cairnq.run.blocking import BlockingContext
from cairnq.run.calls import Call, Ended, arguments
from cairnq.run.current import performing
from cairnq.run.emit import Emit
from cairnq.run.threads import Threads


class ThreadCalls:
    """All on the loop's thread but for the function itself."""

    def __init__(
        self,
        concurrency: int,
        context: Context,
        *,
        begin: Callable[[Call], None],
        returned: Callable[[Call, Ended], None],
        emit: Emit,
    ) -> None:
        """`begin(call)` is called when a thread is there for it; `returned` runs in `context`."""
        self._loop = asyncio.get_running_loop()
        self._context = context
        self._begin = begin
        self._returned = returned
        self._threads = Threads(
            concurrency, "cairnq-handler", on_none=lambda reason: emit("threads.exhausted", reason=reason)
        )
        self._waiting: set[Call] = set()
        self._back: deque[tuple[Call, Ended]] = deque()
        self._is_told = False

    @property
    def waiting(self) -> tuple[Call, ...]:
        """Those for which the system has no thread left."""
        return tuple(self._waiting)

    def start(self, call: Call) -> None:
        """Where the system has no thread left it waits for one, unspent: that says nothing of the task."""
        self._waiting.discard(call)
        if call.cut is not None:
            self._returned(call, Ended(error=asyncio.CancelledError()))
        elif not self._threads.is_ready(or_later=partial(self._try_again, call)):
            self._waiting.add(call)
        else:
            self._begin(call)
            contexts = [BlockingContext(context, self._loop) for context in call.contexts]
            self._threads.run(partial(self._perform, call, contexts))

    def close(self) -> None:
        self._threads.close()

    def _try_again(self, call: Call) -> None:
        if call in self._waiting:
            self.start(call)

    def _perform(self, call: Call, contexts: list[BlockingContext]) -> None:
        """On its thread."""
        try:
            with performing(call.attempts[0].task):
                ended = Ended(value=call.handler.fn(*arguments(call.handler, contexts)))
        except BaseException as error:  # noqa: BLE001 - the border to the handler: whatever it raises is an outcome
            ended = Ended(error=error)
        self._back.append((call, ended))
        if not self._is_told and not self._loop.is_closed():
            self._is_told = True  # one wake of the loop for all that end before it has looked
            self._loop.call_soon_threadsafe(self._collect, context=self._context)

    def _collect(self) -> None:
        """What came back. Told again by whatever ends from here on."""
        self._is_told = False
        try:
            while self._back:
                call, ended = self._back.popleft()
                self._threads.ended()
                self._returned(call, ended)
        finally:
            if self._back:
                self._loop.call_soon(self._collect)
