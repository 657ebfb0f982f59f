"""What the database's word on an attempt proves of a write of it whose reply was lost."""

from __future__ import annotations

from cairnq.pure.models import Outcome, Settlement, Standing, TaskStatus

_REQUEUES = frozenset({Outcome.FAIL, Outcome.RELEASE, Outcome.INTERRUPT, Outcome.CRASH, Outcome.SUSPECT})


def status_written(settlement: Settlement, standing: Standing, *, may_be_own: bool) -> TaskStatus | None:
    """The status that the attempt's own worker gave the task; None where it may have been somebody else.

    A success speaks for itself. Any other end may be that of a recovery too: it is the worker's own where that
    `may_be_own`, for a reply was lost, and the lease was trusted after the answer, so that no recovery can have come.
    """
    match standing:
        case Standing.SUCCEEDED:
            return "succeeded"
        case Standing.FAILED if may_be_own:
            return "failed"
        case Standing.CANCELED if may_be_own:
            return "canceled"
        case Standing.ENDED if may_be_own and settlement.outcome in _REQUEUES:
            return "queued"
        case Standing.GONE if may_be_own:
            return _before_it_went(settlement.outcome)
        case _:
            return None


def _before_it_went(outcome: Outcome) -> TaskStatus | None:
    """Forgotten, or purged at once: a task that was queued again was not."""
    match outcome:
        case Outcome.COMPLETE | Outcome.SUCCEED | Outcome.FORGET:
            return "succeeded"
        case Outcome.FAIL | Outcome.FAIL_PERMANENTLY | Outcome.INTERRUPT:
            return "failed"
        case Outcome.RELEASE | Outcome.CRASH | Outcome.SUSPECT:
            return None
