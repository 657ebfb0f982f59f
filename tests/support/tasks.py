"""Tasks brought into a state, and what must be true of every row whatever was done to it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import psycopg

from cairnq.pure.envelope import envelope
from cairnq.pure.ids import new_worker_id
from cairnq.pure.models import Task
from cairnq.store.base import TaskStore
from tests.support.routes import is_file

ME = new_worker_id()
SOMEBODY = new_worker_id()
LEASE_MS = 30_000
ERROR = envelope("Broken", "handler_error", "it broke", retryable=True)


async def claimed(store: TaskStore, worker_id: str = ME, **submit: Any) -> Task:
    """A task that `worker_id` runs, alone in a queue of its own unless the caller names one."""
    submit.setdefault("queue", f"queue of {new_worker_id()}")
    task = await store.submit("x", {"n": 1}, **submit)
    [running] = await store.claim([submit["queue"]], worker_id, LEASE_MS)
    assert running.id == task.id
    return running


async def in_state(store: TaskStore, state: str, **submit: Any) -> Task:
    """`state`: a status, where `running` is ours, or "cancel asked" (running, ours), or "somebody's" (running)."""
    if state in ("queued", "canceled"):
        task = await store.submit("x", {"n": 1}, **submit)
        canceled = await store.cancel(task.id) if state == "canceled" else None
        return canceled or task
    running = await claimed(store, SOMEBODY if state == "somebody's" else ME, **submit)
    match state:
        case "succeeded":
            return await store.complete(running.id, ME, {"r": 1})
        case "failed":
            return await store.fail(running.id, ME, ERROR, retryable=False)
        case "cancel asked":
            asked = await store.cancel(running.id)
            assert asked is not None
            return asked
        case _:
            return running


_RULES = {
    "a lease if and only if running": "(lease_until_ms is not null) = (status = 'running')",
    "an end if and only if terminal": "(completed_at_ms is not null) = (status in ('succeeded', 'failed', 'canceled'))",
    "a worker while running": "status <> 'running' or worker_id is not null",
    "no worker while queued": "status <> 'queued' or worker_id is null",
    "attempts within bounds": "attempt >= 0",
    "updated after it was made": "updated_at_ms >= created_at_ms",
    "a root": "root_id is not null",
    "an error once failed": "status <> 'failed' or error is not null",
}


def broken_rules(dsn: str) -> list[tuple[Any, ...]]:
    """Rows of `dsn` (installed in `public`) that break an invariant of the protocol, with the rule's name."""
    looks = [
        f"select id, status, '{rule}' from cairnq_tasks where ({holds}) is not true" for rule, holds in _RULES.items()
    ]
    return ask(dsn, " union all ".join(looks))


def ask(dsn: str, statement: str) -> list[tuple[Any, ...]]:
    """The rows of one statement, over a connection of the test's own."""
    if is_file(dsn):
        with closing(sqlite3.connect(dsn)) as file:
            return file.execute(statement).fetchall()
    with psycopg.connect(dsn) as connection:
        return connection.execute(statement.encode()).fetchall()
