"""Writes of tasks that nobody runs: cancel, retry, purge."""

from __future__ import annotations

from cairnq.db.session import Row
from cairnq.pure import arguments
from cairnq.pure.ids import first_task_id_at
from cairnq.pure.models import TERMINAL_STATUSES, Task, TaskStatus
from cairnq.store import rows
from cairnq.store.runner import StatementRunner

CLOCK_ALLOWANCE_MS = 3_600_000
"""A purge reads no id later than its cutoff plus this: by so much may a client's clock run ahead of the database's."""


class Changing(StatementRunner):
    async def cancel(self, task_id: str) -> Task | None:
        """End a queued task; ask a running one to leave. None: not there, or finished already."""
        return _one(await self._rows("cancel", id=arguments.text(task_id, "the task's id")))

    async def cancel_by_key(self, key: str) -> Task | None:
        return await self._change_by_key(key, "cancel")

    async def retry(self, task_id: str, *, reset_attempt: bool = False) -> Task | None:
        """Queue a failed or canceled task again, due now. None: not there, live, or succeeded.

        Attempts go on counting, so a task that had spent them gets one more; `reset_attempt` starts from 0.
        """
        task_id = arguments.text(task_id, "the task's id")
        return _one(await self._rows("retry", id=task_id, reset_attempt=reset_attempt))

    async def retry_by_key(self, key: str, *, reset_attempt: bool = False) -> Task | None:
        return await self._change_by_key(key, "retry", reset_attempt=reset_attempt)

    async def purge(
        self,
        *,
        older_than_ms: int = 0,
        queue: str | None = None,
        status: TaskStatus | None = None,
        name: str | None = None,
        limit: int = 1000,
    ) -> list[str]:
        """Delete up to `limit` tasks that finished at least `older_than_ms` ago, oldest first; returns their ids."""
        age = arguments.integer(older_than_ms, "older_than_ms", least=0, most=2**53)
        filters = {
            "queue": arguments.optional_text(queue, "queue"),
            "name": arguments.optional_text(name, "name"),
        }
        given = {what: value for what, value in filters.items() if value is not None}
        status = arguments.terminal_status(status)
        cutoff_ms = int((await self._rows("now"))[0][0]) - age
        found = await self._rows(
            "purge",
            given,
            statuses=[status] if status else sorted(TERMINAL_STATUSES),
            cutoff_ms=cutoff_ms,
            before_id=first_task_id_at(cutoff_ms + CLOCK_ALLOWANCE_MS),
            limit=arguments.integer(limit, "limit", least=0, most=1_000_000),
            **given,
        )
        return [row[0] for row in found]

    async def _change_by_key(self, key: str, statement: str, **values: object) -> Task | None:
        """Under the key's lock, so that a submit cannot point the key elsewhere in between."""
        key = arguments.text(key, "key")
        async with self._transaction() as bound:
            await bound.rows("lock_keys", keys=[key])
            standing = await bound.rows("get_by_keys", keys=[key])
            if not standing:
                return None
            return _one(await bound.rows(statement, id=standing[0][1], **values))


def _one(found: list[Row]) -> Task | None:
    return rows.task(found[0]) if found else None
