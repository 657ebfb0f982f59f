"""What a client hands on to its store as it is: reads, and changes of tasks that do not run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from cairnq.pure.keywords import ListKeywords, PurgeKeywords
from cairnq.pure.models import Task, TaskRef, TaskStatus
from cairnq.store.base import TaskStore


class StoreHandle:
    """A store, and the methods of it that are a client's too."""

    def __init__(self, store: TaskStore) -> None:
        self.store = store

    async def get(self, task_id: str) -> Task | None:
        return await self.store.get(task_id)

    async def get_by_key(self, key: str) -> Task | None:
        return await self.store.get_by_key(key)

    async def get_status(self, task_id: str) -> TaskRef | None:
        """Id and status alone: the cheap look."""
        return await self.store.get_status(task_id)

    async def get_status_by_key(self, key: str) -> TaskRef | None:
        return await self.store.get_status_by_key(key)

    async def stats(self, queue: str | None = None) -> dict[str, dict[TaskStatus, int]]:
        """Counts by queue and status, zero-filled. Reads every row: for people, not for loops."""
        return await self.store.stats(queue)

    async def queue_depth(self, queue: str, max_depth: int) -> int:
        """How many more tasks fit before `max_depth` are queued."""
        return await self.store.queue_depth(queue, max_depth)

    async def cancel(self, task_id: str) -> Task | None:
        """End a queued task, ask a running one to leave. None: not there, or finished already."""
        return await self.store.cancel(task_id)

    async def cancel_by_key(self, key: str) -> Task | None:
        return await self.store.cancel_by_key(key)

    async def retry(self, task_id: str, *, reset_attempt: bool = False) -> Task | None:
        """Queue a failed or canceled task again. None: not there, live, or succeeded."""
        return await self.store.retry(task_id, reset_attempt=reset_attempt)

    async def retry_by_key(self, key: str, *, reset_attempt: bool = False) -> Task | None:
        return await self.store.retry_by_key(key, reset_attempt=reset_attempt)

    async def purge(self, **which: Unpack[PurgeKeywords]) -> list[str]:
        """Delete finished tasks, oldest first, and return their ids.

        Of those that finished at least `older_than_ms` (0) ago, with this `queue`, `status` and `name` where given,
        up to `limit` (1000).
        """
        return await self.store.purge(**which)

    async def list(self, **which: Unpack[ListKeywords]) -> Sequence[Task]:
        """Tasks, newest first: up to `limit` (100) after the first `offset` (0).

        Of those that have this `status`, `queue`, `name`, `root_id` and `correlation_id`, where given.
        """
        return await self.store.list(**which)
