"""Inserting tasks: one or many, under business keys, in a transaction of the store's or of the caller's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from cairnq.db.session import Row
from cairnq.pure import arguments
from cairnq.pure.arguments import Submission
from cairnq.pure.errors import AlreadyExists, InvalidArgument
from cairnq.pure.models import Task, TaskDef
from cairnq.store import rows, tracing
from cairnq.store.runner import BoundSession, StatementRunner, raise_translated

MAX_KEYS = 5_000
"""How many keys one call on PostgreSQL may name. Each is a lock, and by default a server has room for 6,400."""

Run = Callable[..., Awaitable[list[Row]]]
"""Runs a statement, named first, with its values as keywords."""


class Submitting(StatementRunner):
    async def submit(
        self, name: str | TaskDef[Any, Any], payload: Any = None, *, session: Any = None, **options: Any
    ) -> Task:
        """Insert one task, or return the one that stands under `key` (see PROTOCOL's table of conflicts).

        `session`: a psycopg `AsyncConnection` or a `PgSession`; the insert then is part of that transaction.
        Raises `InvalidArgument`, `SerializationError`, `AlreadyExists`.
        """
        submission = Submission.of(name, payload, **tracing.traced(options))
        if submission.key is not None:
            return (await self._submit_keyed([submission], session))[0]
        if session is None:
            return await _insert_one(self._once, submission)
        async with self._session(session) as bound:
            return await _insert_one(bound.rows, submission)

    async def submit_many(self, items: Sequence[Mapping[str, Any]], *, session: Any = None) -> list[Task]:
        """Insert many tasks in one statement; each item holds the arguments of `submit`. All or none are inserted.

        Returns the tasks in the order of the items. Items that share a key are decided one after the other. On
        PostgreSQL at most `MAX_KEYS` different keys.
        """
        submissions = arguments.submissions(items, prepare=tracing.traced if tracing.is_in_use() else None)
        if not submissions:
            return []
        if any(submission.key is not None for submission in submissions):
            return await self._submit_keyed(submissions, session)
        if session is None:
            return await _insert_many(self._once, submissions)
        async with self._session(session) as bound:
            return await _insert_many(bound.rows, submissions)

    async def _submit_keyed(self, submissions: Sequence[Submission], session: Any) -> list[Task]:
        keys = sorted({submission.key for submission in submissions if submission.key is not None})
        if len(keys) > MAX_KEYS and self._executor.dialect == "postgres":
            raise InvalidArgument(
                f"{len(keys)} keys in one call, and one transaction locks at most {MAX_KEYS}: split the batch"
            )
        async with self._session(session, transaction=True) as bound:
            isolation = (await bound.rows("lock_keys", keys=keys))[0][1]
            if isolation not in ("read committed", "read uncommitted"):
                # The re-read below must see what the lock's previous holder committed.
                raise InvalidArgument(
                    f"a submit with a key cannot run in a transaction under {isolation.upper()}: "
                    "use READ COMMITTED, or submit without a key"
                )
            standing = {row[0]: rows.task(row[1:]) for row in await bound.rows("get_by_keys", keys=keys)}
            plan = _decide(submissions, standing)
            made = await _insert_many(bound.rows, plan.insert) if plan.insert else []
            tasks = plan.existing | {task.id: task for task in made}
            for task_id in plan.cancel:
                canceled = await bound.rows("cancel", id=task_id)
                if canceled and task_id in tasks:  # inserted by this very call, then replaced
                    tasks[task_id] = rows.task(canceled[0])
            if plan.point:
                await bound.rows("point_keys", keys=list(plan.point), task_ids=list(plan.point.values()))
            return [tasks[task_id] for task_id in plan.answers]

    @asynccontextmanager
    async def _session(self, session: Any, *, transaction: bool = False) -> AsyncIterator[BoundSession]:
        """The caller's session where one is given, else one of ours."""
        if session is None:
            async with self._transaction() if transaction else self._autocommit() as bound:
                yield bound
            return
        statements = await self._ready_statements()
        try:
            async with self._executor.borrow(session, transaction=transaction) as theirs:
                yield BoundSession(theirs, statements)
        except Exception as error:  # noqa: BLE001 - raised again, as ours
            raise_translated(error)


class _Plan:
    """What a keyed submit will do: which rows to insert and cancel, where keys go, which task answers each item."""

    def __init__(self) -> None:
        self.insert: list[Submission] = []
        self.cancel: list[str] = []
        self.point: dict[str, str] = {}
        self.existing: dict[str, Task] = {}
        self.answers: list[str] = []


def _decide(submissions: Sequence[Submission], standing: Mapping[str, Task]) -> _Plan:
    """PROTOCOL's table of conflicts, item by item; an item sees what the items before it will have done."""
    plan = _Plan()
    status = {key: task.status for key, task in standing.items()}
    holder = {key: task.id for key, task in standing.items()}
    for item in submissions:
        key = item.key
        found = None if key is None else status.get(key)
        if key is not None and found is not None:
            live = found in ("queued", "running")
            if item.conflict == "reject":
                raise AlreadyExists(key)
            if (item.conflict in ("reuse", "reuse-succeeded") and live) or (
                item.conflict == "reuse-succeeded" and found == "succeeded"
            ):
                plan.answers.append(holder[key])
                if key in standing and standing[key].id == holder[key]:
                    plan.existing[holder[key]] = standing[key]
                continue
            if live:  # replace
                plan.cancel.append(holder[key])
        plan.insert.append(item)
        plan.answers.append(item.id)
        if key is not None:
            plan.point[key], holder[key], status[key] = item.id, item.id, "queued"
    return plan


async def _insert_one(run: Run, item: Submission) -> Task:
    found = await run("submit_one", **item._asdict())
    return rows.queued(item, found[0][0])


async def _insert_many(run: Run, items: Sequence[Submission]) -> list[Task]:
    first = items[0]
    if all(item.kind == first.kind for item in items):
        ids, payloads = [item.id for item in items], [item.payload for item in items]
        found = await run("submit_alike", **first._asdict(), ids=ids, payloads=payloads)
    else:
        columns = dict(zip(Submission._fields, map(list, zip(*items, strict=True)), strict=True))
        found = await run("submit", **{plural: columns[field] for plural, field in _PLURALS.items()})
    created_at_ms = found[0][0]
    return [rows.queued(item, created_at_ms) for item in items]


_PLURALS = {
    "ids": "id",
    "names": "name",
    "queues": "queue",
    "payloads": "payload",
    "metadatas": "metadata",
    "max_attempts": "max_attempts",
    "priorities": "priority",
    "parent_ids": "parent_id",
    "root_ids": "root_id",
    "correlation_ids": "correlation_id",
    "delays_ms": "delay_ms",
}
"""The arrays that `submit` takes, and what of a submission goes into each."""
