"""The reads of a store: one task, lists, counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from cairnq.db.statements import quote_literal
from cairnq.pure import arguments
from cairnq.pure.models import STATUSES, TERMINAL_STATUSES, Task, TaskRef, TaskStatus
from cairnq.store import rows
from cairnq.store.runner import StatementRunner

_MAX_LIMIT = 1_000_000
_MAX_OFFSET = 2**62


class Reading(StatementRunner):
    async def get(self, task_id: str) -> Task | None:
        found = await self._rows("get", id=arguments.text(task_id, "the task's id"))
        return rows.task(found[0]) if found else None

    async def get_by_key(self, key: str) -> Task | None:
        found = await self._rows("get_by_keys", keys=[arguments.text(key, "key")])
        return rows.task(found[0][1:]) if found else None

    async def get_status(self, task_id: str) -> TaskRef | None:
        found = await self._rows("get_status", id=arguments.text(task_id, "the task's id"))
        return TaskRef(*found[0]) if found else None

    async def get_status_by_key(self, key: str) -> TaskRef | None:
        found = await self._rows("get_status_by_key", key=arguments.text(key, "key"))
        return TaskRef(*found[0]) if found else None

    async def ended(self, task_ids: Sequence[str]) -> set[str]:
        """Which of these tasks have ended, or are gone."""
        return {row[0] for row in await self._rows("ended", ids=[*task_ids])}

    async def names(self, task_ids: Sequence[str]) -> dict[str, int]:
        """How many of these tasks stand under each name."""
        return {row[0]: row[1] for row in await self._rows("names", ids=[*task_ids])}

    async def list(
        self,
        *,
        status: TaskStatus | None = None,
        queue: str | None = None,
        name: str | None = None,
        root_id: str | None = None,
        correlation_id: str | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Task]:
        """Newest first: by id, whose head is the time of the submit as its client's clock had it."""
        status = arguments.status(status)
        filters = {
            "queue": arguments.optional_text(queue, "queue"),
            "name": arguments.optional_text(name, "name"),
            "root_id": arguments.optional_text(root_id, "root_id"),
            "correlation_id": arguments.optional_text(correlation_id, "correlation_id"),
        }
        given = {what: value for what, value in filters.items() if value is not None}
        kind = [] if status is None else ["status", "finished" if status in TERMINAL_STATUSES else "live"]
        found = await self._rows_planned_afresh(
            "list",
            {*given, *kind},
            {"status": quote_literal(status)} if status else None,
            limit=arguments.integer(limit, "limit", least=0, most=_MAX_LIMIT),
            offset=arguments.integer(offset, "offset", least=0, most=_MAX_OFFSET),
            **given,
        )
        return [rows.task(row) for row in found]

    async def stats(self, queue: str | None = None) -> dict[str, dict[TaskStatus, int]]:
        """Counts by queue and status, zero-filled. Reads every row: for people, not for loops."""
        arguments.optional_text(queue, "queue")
        found = await self._rows_planned_afresh("stats", ["queue"] if queue else [], queue=queue)
        counts: dict[str, dict[TaskStatus, int]] = {}
        if queue is not None:
            counts[queue] = dict.fromkeys(STATUSES, 0)
        for name, status, count in found:
            counts.setdefault(name, dict.fromkeys(STATUSES, 0))[cast("TaskStatus", status)] = count
        return counts

    async def queue_depth(self, queue: str, max_depth: int) -> int:
        """How many more tasks fit before `max_depth` are queued; reads at most `max_depth` index entries."""
        bound = arguments.integer(max_depth, "max_depth", least=0, most=2**62)
        found = await self._rows("queue_depth", queue=arguments.text(queue, "queue"), bound=bound)
        return int(bound - found[0][0])

    async def protocol_version(self) -> int:
        found = await self._rows("meta", key="protocol_version")
        return int(str(found[0][0]).split(".")[0])
