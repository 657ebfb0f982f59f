"""PROTOCOL's tables 3 and 4 as a program of dictionaries: what a store must show after any history of calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

LEASE_S = 3000
MARKS = ("worker_crashed 1", "worker_crashed 2")
"""Errors of tasks that were in flight at one death, and at two or more."""


@dataclass
class Row:
    """What the protocol says of a task, times in seconds of the model's clock."""

    max_attempts: int
    priority: int
    run_at: tuple[int, int]  # and the number of the event, for what happened at one moment has an order
    status: str = "queued"
    attempt: int = 0
    worker_id: str | None = None
    lease_end: int | None = None
    cancel_asked: bool = False
    result: Any = None
    error: str | None = None
    progress: float | None = None
    message: str | None = None

    @property
    def live(self) -> bool:
        return self.status in ("queued", "running")

    def end(self, status: str, **fields: Any) -> None:
        self._set(status=status, lease_end=None, **fields)

    def queue_again(self, run_at: tuple[int, int], **fields: Any) -> None:
        self._set(status="queued", worker_id=None, lease_end=None, progress=None, message=None, **fields)
        self.run_at = run_at

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            setattr(self, name, value)

    def shown(self) -> tuple[Any, ...]:
        return (
            *(self.status, self.attempt, self.worker_id, self.lease_end is not None, self.cancel_asked),
            *(self.result, self.error, self.progress, self.message),
        )


@dataclass
class Model:
    """Answers as a store does: a status, None, True for a write that was taken, False for a lost lease."""

    now: int = 0
    event: int = 0
    rows: dict[str, Row] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)

    def moment(self, delay: int = 0) -> tuple[int, int]:
        self.event += 1
        return self.now + delay, self.event

    # --- submit and claim ---------------------------------------------------------------------------

    def conflict(self, key: str | None, conflict: str) -> str:
        """What a submit does: "insert", "reuse" or "reject"."""
        standing = self.rows.get(self.keys.get(key or "", ""))
        if key is None or standing is None:
            return "insert"
        if conflict == "reject":
            return "reject"
        reusable = standing.live or (conflict == "reuse-succeeded" and standing.status == "succeeded")
        return "reuse" if reusable and conflict != "replace" else "insert"

    def insert(self, task_id: str, row: Row, key: str | None) -> None:
        if key is not None:
            old = self.keys.get(key)
            if old in self.rows and self.rows[old].live:
                self.cancel(old)
            self.keys[key] = task_id
        self.rows[task_id] = row

    def claim(self, worker_id: str, limit: int, *, suspects: bool = False) -> list[str]:
        due = [
            (-row.priority, row.run_at, task_id)
            for task_id, row in self.rows.items()
            if self._is_due(row) and (row.error == MARKS[-1]) == suspects
        ]
        claimed = [task_id for _, _, task_id in sorted(due)[:limit]]
        for task_id in claimed:
            row = self.rows[task_id]
            row.status, row.worker_id, row.lease_end = "running", worker_id, self.now + LEASE_S
            row.attempt += 1
        return claimed

    def _is_due(self, row: Row) -> bool:
        return row.status == "queued" and row.run_at[0] <= self.now

    # --- writes of a running task -------------------------------------------------------------------

    def held(self, task_id: str, worker_id: str, attempt: int | None) -> Row | None:
        row = self.rows.get(task_id)
        if row is None or row.status != "running" or row.worker_id != worker_id:
            return None
        alive = row.lease_end is not None and row.lease_end > self.now
        return row if alive and attempt in (None, row.attempt) else None

    def complete(self, row: Row, result: Any) -> None:
        if row.cancel_asked:
            row.end("canceled")
        else:
            self.succeed(row, result)

    def succeed(self, row: Row, result: Any) -> None:
        row.end("succeeded", result=result, progress=1.0)

    def fail(self, row: Row, error: str, *, retryable: bool, delay: int = 0) -> None:
        if row.cancel_asked:
            row.end("canceled", error=error)
        elif retryable and row.attempt < row.max_attempts:
            row.queue_again(self.moment(delay), error=error)
        else:
            row.end("failed", error=error)

    def release(self, row: Row, *, started: bool) -> None:
        if row.cancel_asked:
            row.end("canceled")
        elif started and row.max_attempts == 1:
            row.end("failed", error="interrupted")
        else:
            row.queue_again(row.run_at, attempt=row.attempt - 1)

    def crash(self, row: Row, *, alone: bool, delay: int) -> None:
        error = MARKS[row.error in MARKS]
        if alone or row.cancel_asked:
            self.fail(row, error, retryable=True, delay=delay)
        elif row.max_attempts == 1:
            row.end("failed", error=error)
        else:
            row.queue_again(self.moment(delay), error=error, attempt=row.attempt - 1)

    def forget(self, task_id: str, row: Row) -> str:
        if row.cancel_asked:
            row.end("canceled")
        elif task_id in self.keys.values():
            self.succeed(row, "forgotten")
        else:
            del self.rows[task_id]
            return "succeeded"
        return row.status

    # --- everybody else's writes ----------------------------------------------------------------------

    def cancel(self, task_id: str) -> str | None:
        row = self.rows.get(task_id)
        if row is None or not row.live:
            return None
        if row.status == "queued":
            row.end("canceled")
        else:
            row.cancel_asked = True
        return row.status

    def retry(self, task_id: str, *, reset_attempt: bool) -> str | None:
        row = self.rows.get(task_id)
        if row is None or row.status not in ("failed", "canceled"):
            return None
        row.queue_again(self.moment(), error=None, cancel_asked=False)
        row.attempt = 0 if reset_attempt else row.attempt
        return row.status

    def recover(self) -> None:
        for row in self._running(lambda row: row.lease_end is not None and row.lease_end <= self.now):
            if not row.cancel_asked and row.attempt < row.max_attempts:
                row.queue_again(self.moment())
            else:
                row.end(*("canceled",) if row.cancel_asked else ("failed",))
                row.error = row.error if row.cancel_asked else "lease_expired"

    def fail_worker(self, worker_id: str, error: str) -> None:
        for row in self._running(lambda row: self._is_alive(row) and row.worker_id == worker_id):
            self.fail(row, error, retryable=True)

    def purge(self) -> None:
        self.rows = {task_id: row for task_id, row in self.rows.items() if row.live}
        self.keys = {key: task_id for key, task_id in self.keys.items() if task_id in self.rows}

    def _is_alive(self, row: Row) -> bool:
        return row.lease_end is not None and row.lease_end > self.now

    def _running(self, which: Callable[[Row], bool]) -> list[Row]:
        return [row for _, row in sorted(self.rows.items()) if row.status == "running" and which(row)]
