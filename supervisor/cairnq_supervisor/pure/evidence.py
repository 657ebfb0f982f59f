"""What a worker's lease table proves: whether its loop turns, which calls are over time, whether it is spent."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cairnq.run.leases import Entry, LeaseState

K = TypeVar("K", bound=Hashable)

OVERRUN_GRACE = 5.0
"""Seconds past max_run in which the worker itself may end a call. After that its process is ended."""

BLOCKED_AFTER = 1.0
"""Beat intervals without a turn of the loop after which it is called blocked."""


def silence(*, now: float, last_progress: float) -> float:
    """Seconds since the worker's loop last turned; 0 where it does not turn yet, or not any more."""
    return max(0.0, now - last_progress) if last_progress > 0.0 else 0.0


def overrun(entries: Iterable[Entry], *, now: float, max_run: float | None) -> tuple[str, ...]:
    """The tasks whose calls the worker should have ended by itself, and did not."""
    if max_run is None:
        return ()
    latest = now - max_run - OVERRUN_GRACE
    return tuple(entry.task_id for entry in entries if entry.state is LeaseState.STARTED and entry.started_at <= latest)


def has_started(entry: Entry) -> bool:
    """Its handler took its first step, and may have returned since. (What is given back before that ends unstarted.)"""
    return entry.state is not LeaseState.CLAIMED and entry.started_at > 0.0


def culprit(entries: Sequence[Entry], *, calls: int) -> Entry | None:
    """The task that a dead worker had alone in hand, which then is what killed it.

    One whose call returned, but was not settled yet, is to blame only where no call was under way. `calls`: those under
    way or about to start, as the worker counted them. One that was settled before it returned stands in no entry any
    more, and may be to blame as well. So the count must be accounted for: by the one that ran, or together with all
    that had not started. Of these some may have been held ahead of their turn, which the count leaves out: where it
    lies between, it proves nothing.
    """
    running = [entry for entry in entries if entry.state is LeaseState.STARTED]
    in_hand = running or [entry for entry in entries if has_started(entry)]
    about_to_start = sum(entry.state is LeaseState.CLAIMED for entry in entries)
    is_accounted_for = calls <= len(running) or calls == len(running) + about_to_start
    return in_hand[0] if len(in_hand) == 1 and is_accounted_for else None


@dataclass(frozen=True, slots=True)
class Limits:
    """When a worker is replaced, gracefully. Sizes are bytes; None: no limit."""

    max_tasks: int | None = None
    max_rss: int | None = None


def spent(limits: Limits, *, claimed: int, rss: int | None) -> str | None:
    """Why this worker is due for a successor, if it is."""
    if limits.max_tasks is not None and claimed >= limits.max_tasks:
        return f"max_tasks ({limits.max_tasks}) reached"
    if limits.max_rss is not None and rss is not None and rss > limits.max_rss:
        return f"max_rss ({limits.max_rss >> 20} MiB) passed: {rss >> 20} MiB"
    return None


CROWDED = 0.9
"""Part of the granted memory past which the kernel may soon choose a victim, or take all of a container."""


def over_share(resident: Mapping[K, int], *, limit: int, used: int) -> K | None:
    """Which worker to replace before the kernel acts: the largest, if memory is short and it has more than its share.

    `resident`: bytes by worker. `limit` and `used`: bytes of the cgroup. Where none has, the memory went elsewhere.
    """
    if not resident or used < CROWDED * limit:
        return None
    largest = max(resident, key=lambda worker: resident[worker])
    return largest if resident[largest] > CROWDED * limit / len(resident) else None
