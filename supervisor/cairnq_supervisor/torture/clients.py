"""The clients of a run: they submit, cancel and retry while everything fails, and note what was answered."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

from cairnq.client import CairnQ
from cairnq.pure.errors import AlreadyExists, CairnQError, DatabaseReadOnly, DatabaseUnavailable
from cairnq.pure.models import Task
from cairnq_supervisor.torture.evidence import Deed, Note
from cairnq_supervisor.torture.workload import Cancel, Request, Retry, Submit, flood, requests

_PATIENCE_S = 10.0
"""Seconds for one answer. What comes later was not acknowledged."""

_RECENT = 300
"""The latest tasks, among which cancels and retries choose."""

EXPECTED = (DatabaseUnavailable, DatabaseReadOnly, AlreadyExists, TimeoutError)
"""What a client must be ready for while a database is away, and under a key that is taken."""


class Ledger:
    """What all clients together have done."""

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.refused: Counter[str] = Counter()
        self.wrongs: list[str] = []
        self._plain: list[tuple[str, str]] = []

    @property
    def submitted(self) -> int:
        return sum(note.deed is Deed.SUBMITTED for note in self.notes)

    def note(self, deed: Deed, task_id: str, name: str) -> None:
        self.notes.append(Note(deed, task_id, name))

    def acknowledge(self, task: Task, *, keyed: bool) -> None:
        self.note(Deed.SUBMITTED, task.id, task.name)
        if not keyed:
            self._plain.append((task.id, task.name))

    def recent(self, target: float) -> tuple[str, str] | None:
        """Id and name of a task that stands under no key, which a retry would make live beside its successor."""
        latest = self._plain[-_RECENT:]
        return latest[int(target * len(latest))] if latest else None


class Customer:
    """One client and its stream of requests."""

    def __init__(self, client: CairnQ, ledger: Ledger) -> None:
        self._client = client
        self._ledger = ledger

    async def shop(self, seed: int, number: int) -> None:
        """Until it is cancelled."""
        for pause, request in requests(seed, number):
            await asyncio.sleep(pause)
            await self.ask(request)

    async def flood(self, target: float) -> None:
        await self.ask(flood(target))

    async def ask(self, request: Request) -> None:
        """Do it once, and note what was answered. No answer is an answer too."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                match request:
                    case Submit(items=items):
                        await self._submit(items)
                    case Cancel(target=target):
                        await self._cancel(target)
                    case Retry(target=target, reset=reset):
                        await self._retry(target, reset=reset)
        except EXPECTED as error:
            self._ledger.refused[type(error).__name__] += 1
        except CairnQError as error:
            self._ledger.wrongs.append(f"a client's request raised {error!r}")

    async def _submit(self, items: Sequence[dict[str, Any]]) -> None:
        if len(items) > 1:
            for task in await self._client.submit_many(items):
                self._ledger.acknowledge(task, keyed=False)
            return
        [item] = items
        task = await self._client.submit(**item)
        self._ledger.acknowledge(task, keyed="key" in item)

    async def _cancel(self, target: float) -> None:
        if (chosen := self._ledger.recent(target)) and await self._client.cancel(chosen[0]) is not None:
            self._ledger.note(Deed.CANCELED, *chosen)

    async def _retry(self, target: float, *, reset: bool) -> None:
        """Noted before, for it may happen without an answer."""
        if chosen := self._ledger.recent(target):
            self._ledger.note(Deed.RETRIED, *chosen)
            await self._client.retry(chosen[0], reset_attempt=reset)


@contextlib.asynccontextmanager
async def shopping(customers: Sequence[Customer], seed: int) -> AsyncIterator[None]:
    """All of them at work inside the block. What one of them raises is raised at its end."""
    tasks = [asyncio.create_task(customer.shop(seed, number)) for number, customer in enumerate(customers)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
