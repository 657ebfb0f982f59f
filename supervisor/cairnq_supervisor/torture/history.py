"""The state machine of the protocol, held against each change of a row's status that a trigger noted."""

from __future__ import annotations

from collections.abc import Iterator

from cairnq_supervisor.torture.evidence import Change, Deed, Evidence


def broken_links(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Every change that the protocol does not know, or that does not follow from the one before."""
    retried = evidence.noted(Deed.RETRIED)
    last: dict[str, Change] = {}
    for change in sorted(evidence.changes, key=lambda change: change.seq):
        task_id, previous = change.task_id, last.get(change.task_id)
        last[task_id] = change
        if previous is not None and not _follows(previous, change):
            yield task_id, f"became {_state(previous)}, and then {change.after} from {change.before}"
        reason = _fault(change, retried=task_id in retried)
        if reason is not None:
            yield task_id, f"{change.before or 'nothing'} to {change.after or 'nothing'}: {reason}"
    for row in evidence.rows.values():
        latest = last.get(row.id)
        if latest is None:
            yield row.id, "is there, and nobody saw it made"
        elif (latest.after, latest.attempt) != (row.status, row.attempt):
            yield row.id, f"is {row.status} in attempt {row.attempt}, and became {_state(latest)} last"


def _follows(previous: Change, change: Change) -> bool:
    return (previous.after, previous.attempt, previous.worker) == (change.before, change.old_attempt, change.old_worker)


def _state(change: Change) -> str:
    return f"{change.after} in attempt {change.attempt} of {change.worker}"


def _fault(change: Change, *, retried: bool) -> str | None:
    """What is wrong with this change by itself."""
    match change.before, change.after:
        case None, "queued":
            return None if change.attempt == 0 else f"made in attempt {change.attempt}"
        case "queued", "running":
            return _claim(change)
        case "running", "queued":
            return _given_back(change)
        case "running", ("succeeded" | "failed"):
            return "a cancel that was asked wins over every outcome" if change.canceling else _ended(change)
        case "running", "canceled":
            return _ended(change) if change.canceling else "nobody had asked for a cancel"
        case "running", None:
            if change.canceling:
                return "a cancel that was asked wins over every outcome"
            return None if change.name == "forgotten" else "a row was removed that is not of a handler that forgets"
        case "queued", "canceled":
            return _ended(change)
        case (("failed" | "canceled"), "queued"):
            return None if retried else "nobody had asked for a retry"
        case _:
            return "the protocol knows no such change"


def _claim(change: Change) -> str | None:
    if change.attempt != (change.old_attempt or 0) + 1:
        return f"attempt {change.old_attempt} became {change.attempt}"
    if change.worker is None or change.lease_until_ms is None:
        return f"worker {change.worker}, lease_until_ms {change.lease_until_ms}"
    return None


def _given_back(change: Change) -> str | None:
    if change.canceling:
        return "a cancel that was asked wins over every outcome"
    if change.attempt not in (change.old_attempt, (change.old_attempt or 0) - 1):
        return f"attempt {change.old_attempt} became {change.attempt}"
    if change.worker is not None or change.lease_until_ms is not None:
        return f"still has worker {change.worker}, lease_until_ms {change.lease_until_ms}"
    return None


def _ended(change: Change) -> str | None:
    if change.attempt != change.old_attempt:
        return f"attempt {change.old_attempt} became {change.attempt}"
    if change.lease_until_ms is not None or change.completed_at_ms is None:
        return f"lease_until_ms {change.lease_until_ms}, completed_at_ms {change.completed_at_ms}"
    return None
