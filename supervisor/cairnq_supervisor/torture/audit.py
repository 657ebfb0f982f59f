"""Holds the evidence of a run against what was promised. Pure: each check names the tasks that were wronged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cairnq_supervisor.torture.evidence import Change, Deed, Evidence, Row, Run
from cairnq_supervisor.torture.history import broken_links
from cairnq_supervisor.torture.workload import GOOD, MANY_ATTEMPTS

TERMINAL = frozenset({"succeeded", "failed", "canceled"})
_WITHOUT_A_CALL = frozenset({"lease_expired", "worker_crashed", "interrupted"})
"""Error codes of failures that nobody's handler needs to have seen: its process was gone first."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A promise that was not kept."""

    check: str
    task_id: str
    what: str


def audit(evidence: Evidence) -> Mapping[str, Sequence[Breach]]:
    """By check: its breaches, none where the promise was kept."""
    return {name: [Breach(name, task_id, what) for task_id, what in check(evidence)] for name, check in CHECKS.items()}


def _acknowledged_tasks_exist(evidence: Evidence) -> Iterator[tuple[str, str]]:
    finished = {run.task_id for run in evidence.runs if run.ended is not None}
    for note in evidence.notes:
        if note.deed is not Deed.SUBMITTED or note.task_id in evidence.rows:
            continue
        if note.name != "forgotten":
            yield note.task_id, "was acknowledged, and is not there"
        elif note.task_id not in finished:
            yield note.task_id, "was forgotten, and no call of it came to its end"


def _all_ended(evidence: Evidence) -> Iterator[tuple[str, str]]:
    for row in evidence.rows.values():
        if row.status not in TERMINAL:
            yield row.id, f"is still {row.status}, in attempt {row.attempt}"


def _ran_at_least_once(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """A success names the call that it is the result of."""
    runs = {run.run_id: run for run in evidence.runs}
    called = {run.task_id for run in evidence.runs}
    raised = {(run.task_id, run.worker_id, run.attempt) for run in evidence.runs if run.raised is not None}
    for row in evidence.rows.values():
        if row.status == "failed" and _code(row) not in _WITHOUT_A_CALL:
            if row.id not in called:
                yield row.id, f"failed with {_code(row)}, and was never called"
            elif row.name == "failing" and (row.id, row.worker_id, row.attempt) not in raised:
                yield row.id, f"failed with {_code(row)} in attempt {row.attempt}, which raised nothing"
        if row.status != "succeeded":
            continue
        run = runs.get(_named(row) or "")
        if run is None or run.task_id != row.id:
            yield row.id, f"succeeded with {row.result!r}, which no call of it returned"
        elif run.ended is None:
            yield row.id, f"succeeded by the call {run.run_id}, which never came to its end"
        elif (run.worker_id, run.attempt) != (row.worker_id, row.attempt):
            yield row.id, f"is settled for attempt {row.attempt} of {row.worker_id} by another's call {run.run_id}"


def _never_two_at_once(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """The time in which a call was seen to run under trust belongs to that call alone."""
    for task_id, runs in _by_task(evidence.runs).items():
        seen = sorted((run for run in runs if run.trusted is not None), key=lambda run: run.began)
        reach: Run | None = None
        for run in seen:
            if reach is not None and run.began < _trusted(reach):
                together = min(_trusted(reach), _trusted(run)) - run.began
                yield task_id, f"the calls {reach.run_id} and {run.run_id} were both trusted for {together:.3f} s"
            if reach is None or _trusted(run) > _trusted(reach):
                reach = run


def _settled_once(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """What is written together with a settlement is there as often as a settlement, and with every success."""
    settled: defaultdict[str, int] = defaultdict(int)
    for change in evidence.changes:
        settled[change.task_id] += change.before == "running" and change.after in ("succeeded", "canceled")
    written: defaultdict[str, list[str]] = defaultdict(list)
    for task_id, run_id in evidence.effects:
        written[task_id].append(run_id)
    for task_id, run_ids in written.items():
        if len(run_ids) > settled[task_id]:
            yield task_id, f"was settled {settled[task_id]} times, and each of {', '.join(run_ids)} wrote its rows"
    for row in evidence.rows.values():
        if row.name == "transact" and row.status == "succeeded" and _named(row) not in written[row.id]:
            yield row.id, "succeeded without the rows that its settlement writes"


def _attempts_in_bounds(evidence: Evidence) -> Iterator[tuple[str, str]]:
    retried = evidence.noted(Deed.RETRIED)
    claims: defaultdict[str, int] = defaultdict(int)
    for change in evidence.changes:
        claims[change.task_id] += change.after == "running"
    for task_id, runs in _by_task(evidence.runs).items():
        if len(runs) > claims[task_id]:
            yield task_id, f"was called {len(runs)} times in {claims[task_id]} claims"
    for row in evidence.rows.values():
        if row.attempt > row.max_attempts and row.id not in retried:
            yield row.id, f"is in attempt {row.attempt} of {row.max_attempts}"
        if row.status == "failed":
            yield from ((row.id, what) for what in _given_up(row))


def _given_up(row: Row) -> Iterator[str]:
    if row.name in GOOD and row.max_attempts == MANY_ATTEMPTS:
        yield f"failed in attempt {row.attempt}, with {_code(row)}, though its handler never does"
    elif _retryable(row) and row.attempt < row.max_attempts and _code(row) != "interrupted":
        yield f"was given up in attempt {row.attempt} of {row.max_attempts}, with {_code(row)}"


def _keys_unique(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Under one key one task lives at a time, unless a cancel was asked of the older."""
    lives, rows = _lives(evidence), evidence.rows
    tasks: defaultdict[tuple[str, str | None], list[str]] = defaultdict(list)
    for change in evidence.changes:
        if change.before is None and change.key is not None:
            tasks[change.key, change.conflict].append(change.task_id)
    for (key, conflict), ids in tasks.items():
        for older, younger in pairwise(ids):
            # One that replaces is made before the older one is told to go, and nobody sees it until then.
            begun = lives[younger].claimed if conflict == "replace" else lives[younger].born
            if lives[older].died > begun and not lives[older].canceling:
                yield younger, f"lived under {key!r} while {older} did"
        if conflict == "reuse-succeeded":
            done = [task_id for task_id in ids if task_id in rows and rows[task_id].status == "succeeded"]
            yield from ((task_id, f"succeeded under {key!r} after {done[0]} had") for task_id in done[1:])
        latest = ids[-1]
        if evidence.keys.get(key) != (latest if latest in rows else None):
            yield latest, f"is the latest under {key!r}, which points at {evidence.keys.get(key)}"


def _leases_and_marks(evidence: Evidence) -> Iterator[tuple[str, str]]:
    for row in evidence.rows.values():
        running, ended = row.status == "running", row.status in TERMINAL
        if (row.lease_until_ms is not None) != running:
            yield row.id, f"is {row.status} with lease_until_ms {row.lease_until_ms}"
        if row.status == "queued" and row.worker_id is not None:
            yield row.id, f"is queued and belongs to {row.worker_id}"
        if (row.completed_at_ms is not None) != ended:
            yield row.id, f"is {row.status} with completed_at_ms {row.completed_at_ms}"
        if row.status == "succeeded" and row.progress != 1.0:
            yield row.id, f"succeeded with progress {row.progress}"


def _cancels_hold(evidence: Evidence) -> Iterator[tuple[str, str]]:
    for task_id in evidence.noted(Deed.CANCELED) - evidence.noted(Deed.RETRIED):
        row = evidence.rows.get(task_id)
        if row is None or (row.status in TERMINAL and row.status != "canceled"):
            yield task_id, f"its cancel was acknowledged, and it is {row.status if row else 'gone'}"


def _chains_go_on(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """What a handler submitted before it succeeded is there."""
    parents = {row.parent_id for row in evidence.rows.values()}
    for row in evidence.rows.values():
        if row.name == "chain" and row.status == "succeeded" and row.id not in parents:
            yield row.id, "succeeded, and the task that it submitted is not there"


def _every_change_allowed(evidence: Evidence) -> Iterator[tuple[str, str]]:
    return broken_links(evidence)


CHECKS: Mapping[str, Callable[[Evidence], Iterator[tuple[str, str]]]] = {
    "every acknowledged task exists": _acknowledged_tasks_exist,
    "every task ended": _all_ended,
    "every success is the result of a call": _ran_at_least_once,
    "never two trusted calls at once": _never_two_at_once,
    "settled at most once": _settled_once,
    "attempts within bounds": _attempts_in_bounds,
    "keys unique": _keys_unique,
    "leases and marks fit the status": _leases_and_marks,
    "acknowledged cancels hold": _cancels_hold,
    "what a handler submitted exists": _chains_go_on,
    "every change of status allowed": _every_change_allowed,
}


@dataclass(slots=True)
class _Life:
    born: int
    claimed: float = float("inf")
    died: float = float("inf")
    canceling: bool = False


def _lives(evidence: Evidence) -> dict[str, _Life]:
    """By task: the numbers of the changes at which it was made, first claimed, and ended."""
    lives: dict[str, _Life] = {}
    for change in evidence.changes:
        life = lives.setdefault(change.task_id, _Life(change.seq))
        life.claimed = min(life.claimed, change.seq if change.after == "running" else float("inf"))
        life.died = change.seq if change.after is None or change.after in TERMINAL else float("inf")
        # A replaced task is cancelled after its successor was made, in one transaction.
        life.canceling = life.canceling or change.canceling or change.after == "canceled"
    for task_id in evidence.rows:
        lives.setdefault(task_id, _Life(0))
    return lives


def history_of(evidence: Evidence, task_id: str) -> tuple[list[Change], list[Run]]:
    """What there is to show of one task."""
    return [c for c in evidence.changes if c.task_id == task_id], [r for r in evidence.runs if r.task_id == task_id]


def _by_task(runs: Sequence[Run]) -> dict[str, list[Run]]:
    grouped: defaultdict[str, list[Run]] = defaultdict(list)
    for run in runs:
        grouped[run.task_id].append(run)
    return grouped


def _trusted(run: Run) -> float:
    assert run.trusted is not None
    return run.trusted


def _named(row: Row) -> str | None:
    """The call that the result names."""
    named = row.result.get("run") if isinstance(row.result, dict) else None
    return named if isinstance(named, str) else None


def _code(row: Row) -> str:
    return str(row.error.get("code")) if isinstance(row.error, dict) else "no error"


def _retryable(row: Row) -> bool:
    return isinstance(row.error, dict) and row.error.get("retryable") is True
