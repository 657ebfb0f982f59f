"""Waiting for a task's end: a poll that is the truth, and a notification that only shortens its sleep."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar

from cairnq.db.replies import within
from cairnq.pure import arguments
from cairnq.pure.errors import CairnQError, DatabaseUnavailable, TaskTimeout
from cairnq.pure.models import Task
from cairnq.store.base import TaskStore

T = TypeVar("T")

POLL_GROWTH = 1.5
LINGER_S = 5.0
"""How long the LISTEN connection stays after the last wait, so that a loop of waits does not open one each."""

REPLY_S = 2.0
"""How long after a wait's time-out a reply to its read may still come: the last read begins just then."""

DONE_CHANNEL = "cairnq_done"


class DoneWatch:
    """One subscription to `cairnq_done` for all waits of a client, held only while somebody waits."""

    def __init__(self, store: TaskStore) -> None:
        self._store = store
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._stop: Callable[[], Awaitable[None]] | None = None
        self._lock = asyncio.Lock()
        self._linger: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._look_again = False

    @asynccontextmanager
    async def watching(self, task_id: str | None) -> AsyncIterator[asyncio.Event]:
        """The event is set each time the task's end was notified, or may have been missed; without a task, never."""
        event = asyncio.Event()
        if task_id is None:
            yield event
            return
        self._waiting.setdefault(task_id, set()).add(event)
        try:
            await self._subscribe()
            yield event
        finally:
            events = self._waiting[task_id]
            events.discard(event)
            if not events:
                del self._waiting[task_id]
            if not self._waiting and self._linger is None:
                self._linger = asyncio.get_running_loop().call_later(LINGER_S, self._linger_over)

    async def close(self) -> None:
        async with self._lock:
            await self._unsubscribe()

    async def _subscribe(self) -> None:
        async with self._lock:
            if self._linger is not None:
                self._linger.cancel()
                self._linger = None
            if self._stop is None:
                self._stop = await self._store.listen([DONE_CHANNEL], self._on_notify, self._on_state)

    def _on_notify(self, _channel: str, task_id: str) -> None:
        if task_id:
            self._wake(task_id)
        else:
            self._look_at_all()

    def _wake(self, task_id: str) -> None:
        for event in self._waiting.get(task_id, ()):
            event.set()

    def _on_state(self, delivers: bool) -> None:
        """What ended before notifications (again) arrived was not notified."""
        if delivers:
            self._look_at_all()

    def _look_at_all(self) -> None:
        self._look_again = True
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        """Something changed and nobody said what: one read for all waits."""
        while self._look_again and self._waiting:
            self._look_again = False
            try:
                ended = await self._store.ended(list(self._waiting))
            except CairnQError:
                return  # each wait polls, and meets the error itself
            for task_id in ended:
                self._wake(task_id)

    def _linger_over(self) -> None:
        self._closing = asyncio.get_running_loop().create_task(self._close_if_idle())

    async def _close_if_idle(self) -> None:
        async with self._lock:  # somebody may have come to wait in between
            if not self._waiting:
                await self._unsubscribe()

    async def _unsubscribe(self) -> None:
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        stop, self._stop = self._stop, None
        if stop is not None:
            await stop()


def check_options(*, timeout_ms: int, poll_ms: int, max_poll_ms: int) -> None:
    """Raises `InvalidArgument`: for whoever does something else before the wait."""
    _deadline(timeout_ms)
    _Pauses(poll_ms, max_poll_ms)


class Waiter:
    """Waits for tasks of one store."""

    def __init__(self, store: TaskStore, watch: DoneWatch) -> None:
        self._store = store
        self._watch = watch

    async def wait(self, task_id: str, *, timeout_ms: int, poll_ms: int, max_poll_ms: int) -> Task:
        """The task once it is terminal. Raises `TaskTimeout` after `timeout_ms`; the task runs on.

        An outage of the database is waited out too, and its silence; one that lasts till then raises
        `DatabaseUnavailable`.
        """
        arguments.text(task_id, "the task's id")
        deadline = _deadline(timeout_ms)
        pauses = _Pauses(poll_ms, max_poll_ms)
        async with self._watch.watching(task_id) as done:
            while True:
                done.clear()
                with _outage_until(deadline):
                    ref = await _reply(self._store.get_status(task_id), deadline)
                    if ref is not None and ref.is_terminal:
                        task = await _reply(self._store.get(task_id), deadline)
                        if task is not None and task.is_terminal:  # else retried, or purged, between the two reads
                            return task
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    return await self._last_look(task_id, None, timeout_ms)
                await _wait_for(done, min(pauses.next(), remaining))

    async def wait_by_key(self, key: str, *, timeout_ms: int, poll_ms: int, max_poll_ms: int) -> Task:
        """As `wait`, for whichever task the key points at when it ends; a key that is not there yet is waited for."""
        arguments.text(key, "key")
        deadline = _deadline(timeout_ms)
        pauses = _Pauses(poll_ms, max_poll_ms)
        watched: str | None = None
        standing: str | None = None
        while True:
            async with self._watch.watching(watched) as done:
                while True:
                    done.clear()
                    with _outage_until(deadline):
                        ref = await _reply(self._store.get_status_by_key(key), deadline)
                        standing = None if ref is None else ref.id
                        if ref is not None and ref.is_terminal:
                            task = await _reply(self._store.get_by_key(key), deadline)
                            if task is not None and task.is_terminal:
                                return task
                    remaining = deadline - time.monotonic()
                    if remaining <= 0:
                        return await self._last_look(standing, key, timeout_ms)
                    if standing != watched:
                        break  # listen for that one, and look again
                    await _wait_for(done, min(pauses.next(), remaining))
            watched = standing

    async def _last_look(self, task_id: str | None, key: str | None, timeout_ms: int) -> Task:
        """The task, if it has ended at this very moment. Raises `TaskTimeout`, which says what it is stuck in."""
        task = None if task_id is None else await _reply(self._store.get(task_id), time.monotonic())
        if task is not None and task.is_terminal:
            return task
        what = f"task {task_id}" if key is None else f"the task under key {key!r}"
        raise TaskTimeout(
            f"{what} did not end within {timeout_ms} ms: {describe(task)}", task_id=task_id, task=task, key=key
        )


def describe(task: Task | None) -> str:
    """What a task that has not ended is stuck in."""
    if task is None:
        return "there is no such task (never submitted, purged, or forgotten after its success)"
    which = f"attempt {task.attempt} of {task.max_attempts}"
    if task.running:
        progress = "" if task.progress is None else f", progress {task.progress:.0%}"
        message = "" if task.message is None else f" ({task.message})"
        cancel = ", a cancel was asked" if task.cancel_requested else ""
        return f"it is running, {which} on {task.worker_id}{progress}{message}{cancel}"
    if isinstance(task.error, dict) and task.attempt > 0:
        reason = f"{task.error.get('code')}: {task.error.get('message')}"
        return f"it is queued again in {task.queue!r} after {which} failed ({reason})"
    delay = task.run_at_ms - task.updated_at_ms
    if delay > 0:
        return f"it is queued in {task.queue!r}, submitted to run {delay} ms later"
    return f"it is queued in {task.queue!r} and no worker has claimed it (is one running for this queue and name?)"


class _Pauses:
    """From `poll_ms`, growing by half, to `max_poll_ms`."""

    def __init__(self, poll_ms: int, max_poll_ms: int) -> None:
        self._most = arguments.integer(max_poll_ms, "max_poll_ms", least=1, most=2**31) / 1000
        self._next = arguments.integer(poll_ms, "poll_ms", least=1, most=2**31) / 1000

    def next(self) -> float:
        pause = min(self._next, self._most)
        self._next *= POLL_GROWTH
        return pause


def _deadline(timeout_ms: int) -> float:
    return time.monotonic() + arguments.integer(timeout_ms, "timeout_ms", least=0, most=2**53) / 1000


@contextmanager
def _outage_until(deadline: float) -> Iterator[None]:
    """Reads are repeated anyway: that the database is away for a moment is no news of the task."""
    try:
        yield
    except DatabaseUnavailable:
        if time.monotonic() >= deadline:
            raise


async def _reply(read: Awaitable[T], deadline: float) -> T:
    """Or `DatabaseUnavailable`, a moment past the deadline: a server that hangs never says that it does."""
    return await within(read, max(deadline - time.monotonic(), 0.0) + REPLY_S, "a look at the task")


async def _wait_for(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
