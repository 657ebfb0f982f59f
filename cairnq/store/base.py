"""The contract of a store: what every backend can do. Clients, workers and supervisors are written against it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, Unpack

from cairnq.db.session import PgSession
from cairnq.pure.envelope import Envelope
from cairnq.pure.keywords import ListKeywords, PurgeKeywords
from cairnq.pure.models import (
    Beat,
    ClaimedTask,
    Conflict,
    Held,
    Outlook,
    QueueBacklog,
    Settlement,
    Standing,
    Task,
    TaskDef,
    TaskRef,
    TaskStatus,
)

T = TypeVar("T")

Draw = Callable[[Sequence[str] | None, int], Awaitable[list[Task]]]
"""`await draw(names, limit)`: claims up to `limit` tasks of these names (None: any) inside the session."""

DrawClaimed = Callable[[Sequence[str] | None, int], Awaitable[list[ClaimedTask]]]


@dataclass(frozen=True, slots=True)
class Installation:
    """What the connect-time checks found. Handing it to another store of the same database skips them there."""

    schema: str
    protocol_version: int


class TaskStore(Protocol):
    """All writes of a running task carry the ownership check; one that matches no row raises `LostLease`.

    `attempt` narrows that check to one attempt. The `_many` forms name it always, take any number of rows,
    and report per row instead of raising.
    """

    installation: Installation | None
    exchanges: bool

    async def connect(self) -> Installation: ...
    async def close(self) -> None: ...
    def sibling(self) -> TaskStore | None:
        """A store of the same database with a connection of its own, for another thread; None where that cannot be."""
        ...

    async def protocol_version(self) -> int: ...

    # --- submit and read ------------------------------------------------------------------------

    async def submit(
        self,
        name: str | TaskDef[Any, Any],
        payload: Any = None,
        *,
        queue: str = "default",
        key: str | None = None,
        conflict: Conflict = "reuse",
        max_attempts: int = 3,
        priority: int = 0,
        metadata: Mapping[str, Any] | None = None,
        parent_id: str | None = None,
        root_id: str | None = None,
        correlation_id: str | None = None,
        run_at_delay_ms: int = 0,
        session: Any = None,
    ) -> Task: ...

    async def submit_many(self, items: Sequence[Mapping[str, Any]], *, session: Any = None) -> list[Task]: ...
    async def get(self, task_id: str) -> Task | None: ...
    async def get_by_key(self, key: str) -> Task | None: ...
    async def get_status(self, task_id: str) -> TaskRef | None: ...
    async def get_status_by_key(self, key: str) -> TaskRef | None: ...
    async def ended(self, task_ids: Sequence[str]) -> set[str]:
        """Which of these tasks have ended, or are gone: one look for many waits."""
        ...

    async def names(self, task_ids: Sequence[str]) -> dict[str, int]:
        """How many of these tasks stand under each name."""
        ...

    async def stats(self, queue: str | None = None) -> dict[str, dict[TaskStatus, int]]: ...
    async def queue_depth(self, queue: str, max_depth: int) -> int: ...

    # --- change tasks that are not running -------------------------------------------------------

    async def cancel(self, task_id: str) -> Task | None: ...
    async def cancel_by_key(self, key: str) -> Task | None: ...
    async def retry(self, task_id: str, *, reset_attempt: bool = False) -> Task | None: ...
    async def retry_by_key(self, key: str, *, reset_attempt: bool = False) -> Task | None: ...
    async def purge(self, **which: Unpack[PurgeKeywords]) -> list[str]: ...

    # --- run: one task ---------------------------------------------------------------------------

    async def claim(
        self,
        queues: Sequence[str],
        worker_id: str,
        lease_ms: int = 30_000,
        limit: int = 1,
        names: Sequence[str] | None = None,
    ) -> list[Task]:
        """Recovers expired leases first when this process has not done so lately, then claims."""
        ...

    async def claim_session(
        self,
        queues: Sequence[str],
        worker_id: str,
        lease_ms: int,
        names: Sequence[str] | None,
        plan: Callable[[Draw], Awaitable[T]],
    ) -> T | None:
        """Runs `plan` inside one claiming transaction; None, with no transaction at all, when nothing is due."""
        ...

    async def heartbeat(
        self, task_id: str, worker_id: str, lease_ms: int = 30_000, *, attempt: int | None = None
    ) -> Task: ...
    async def heartbeat_batch(
        self, task_ids: Sequence[str], worker_id: str, lease_ms: int = 30_000
    ) -> dict[str, bool]: ...
    async def progress(
        self,
        task_id: str,
        worker_id: str,
        progress: float | None = None,
        message: str | None = None,
        *,
        attempt: int | None = None,
    ) -> Task: ...
    async def succeed(self, task_id: str, worker_id: str, result: Any, *, attempt: int | None = None) -> Task: ...
    async def complete(self, task_id: str, worker_id: str, result: Any, *, attempt: int | None = None) -> Task: ...
    async def complete_in(
        self,
        task_id: str,
        worker_id: str,
        write: Callable[[PgSession], Awaitable[T]],
        *,
        attempt: int | None = None,
    ) -> tuple[Task, T]:
        """`write(session)` and the settlement commit together; the settlement is the last statement."""
        ...

    async def fail(
        self,
        task_id: str,
        worker_id: str,
        error: Envelope,
        retryable: bool = True,
        delay_ms: int = 0,
        *,
        attempt: int | None = None,
    ) -> Task: ...

    # --- run: many tasks, one statement ------------------------------------------------------------

    async def claim_many(
        self,
        queues: Sequence[str],
        worker_id: str,
        lease_ms: int,
        limit: int,
        names: Sequence[str] | None,
    ) -> list[ClaimedTask]:
        """The worker's claim: one statement, no recovery, and the payload's size as the wire told it."""
        ...

    async def claim_suspect(
        self, queues: Sequence[str], worker_id: str, lease_ms: int, names: Sequence[str]
    ) -> list[ClaimedTask]:
        """At most one task that was in flight at two deaths of its process. The other claims leave such tasks out.

        For a worker that runs nothing else, and nothing beside it until it has ended.
        """
        ...

    async def suspect_waits(self, queues: Sequence[str], names: Sequence[str]) -> bool:
        """Whether `claim_suspect` would find one."""
        ...

    async def claim_drawn(
        self,
        queues: Sequence[str],
        worker_id: str,
        lease_ms: int,
        names: Sequence[str] | None,
        plan: Callable[[DrawClaimed], Awaitable[T]],
    ) -> T | None:
        """`claim_session` with payload sizes."""
        ...

    async def settle_many(self, worker_id: str, settlements: Sequence[Settlement]) -> list[TaskStatus | None]:
        """The status each row has now, in the order given; None where the write matched no row (see `standing_many`).

        A FORGET answers `succeeded` whether the row was removed or, because a key points at it, kept.
        If the database refuses a body (SQLSTATE class 22, 23 or 54) the batch is split and only the culprit ends
        `failed` with `unserializable_result`; its status here is then `failed`.
        Never raises for a single row; raises only when the database cannot be reached.
        """
        ...

    async def settle_and_claim(
        self,
        worker_id: str,
        settlements: Sequence[Settlement],
        queues: Sequence[str],
        lease_ms: int,
        limit: int,
        names: Sequence[str] | None,
    ) -> tuple[list[TaskStatus | None], list[ClaimedTask]] | None:
        """The answers of `settle_many` and of `claim_many`: one round trip and one commit, where the store `exchanges`.

        None: nothing was written, for one of them was refused (a body, a deadlock), or must go by itself.
        """
        ...

    async def beat_many(self, beats: Sequence[Beat]) -> list[bool | None]:
        """Per lease: None when no row matched (lost, settled, or its row locked), else whether a cancel was asked."""
        ...

    async def release_many(
        self, worker_id: str, held: Sequence[Held], *, started: bool = False, reason: str = "released"
    ) -> list[TaskStatus | None]:
        """Give attempts back without spending them. `started=True`: one with max_attempts = 1 ends `interrupted`."""
        ...

    async def fail_worker(
        self, worker_id: str, error: Envelope, *, backoff_ms: int = 1000, backoff_max_ms: int = 30_000
    ) -> list[TaskRef]:
        """Fail (retryable, with backoff) everything that a dead worker still holds."""
        ...

    async def standing_many(self, worker_id: str, held: Sequence[Held]) -> list[Standing]: ...
    async def standing_of(self, attempts: Iterable[tuple[str, str, int]]) -> list[Standing]: ...
    async def held_by(self, worker_id: str) -> list[Held]:
        """What the database says this worker is running: read after a claim whose reply was lost."""
        ...

    async def recover(self, limit: int = 1000) -> int:
        """Re-queue (or fail) up to `limit` rows with an expired lease, of all queues; returns how many."""
        ...

    # --- upkeep ------------------------------------------------------------------------------------

    async def backlog(self, queues: Sequence[str], bound: int) -> dict[str, QueueBacklog]:
        """How much waits and runs, by queue, counted up to `bound`."""
        ...

    async def outlook(self, queues: Sequence[str], bound: int, *, expired: bool) -> Outlook:
        """What is due, what runs, when the next one is due and, where asked for, whether some lease is over."""
        ...

    async def take_duty(self, duty: str, holder: str, lease_ms: int) -> bool:
        """Whether this holder has, for `lease_ms` from now, a duty that one has for all hosts."""
        ...

    async def vacuum_if_due(self) -> bool:
        """Remove dead rows where they pile up; waits for nobody. Returns whether it did."""
        ...

    # --- wake-ups ----------------------------------------------------------------------------------

    async def listen(
        self,
        channels: Sequence[str],
        on_notify: Callable[[str, str], None],
        on_state: Callable[[bool], None],
        *,
        probe: Callable[[str], Awaitable[None]] | None = None,
    ) -> Callable[[], Awaitable[None]]:
        """Subscribe; `on_notify(channel, payload)` and `on_state(delivers)` run on the loop and must not block.

        `on_state(True)` comes once a self-test has proved that notifications arrive, `on_state(False)` when
        they stop to; the store reconnects by itself, with backoff, until the returned coroutine function is awaited.
        A payload may be empty: something changed, and what is not known. `probe(channel)` is called for the self-test's
        other half, in place of a connection of this store: it is to have `notify` called somewhere.
        """
        ...

    async def notify(self, channel: str) -> None:
        """Tell whoever listens to this channel, without a payload."""
        ...

    # --- last, for it hides the built-in in annotations below it -------------------------------------

    async def list(self, **which: Unpack[ListKeywords]) -> list[Task]: ...
