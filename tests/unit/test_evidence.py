"""What proves that a write without a reply was made, and by whom."""

from __future__ import annotations

import pytest

from cairnq.pure.models import Outcome, Settlement, Standing
from cairnq.run.evidence import status_written

COMPLETIONS = {Outcome.COMPLETE, Outcome.SUCCEED, Outcome.FORGET}
FAILURES = {Outcome.FAIL, Outcome.FAIL_PERMANENTLY, Outcome.INTERRUPT}
REQUEUES = set(Outcome) - COMPLETIONS - {Outcome.FAIL_PERMANENTLY}


def told(outcome: Outcome, standing: Standing, *, may_be_own: bool) -> str | None:
    return status_written(Settlement("task_1", 1, outcome), standing, may_be_own=may_be_own)


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("standing", Standing)
def test_without_trust_nothing_but_a_success_proves_anything(outcome: Outcome, standing: Standing) -> None:
    expected = "succeeded" if standing is Standing.SUCCEEDED else None
    assert told(outcome, standing, may_be_own=False) == expected


@pytest.mark.parametrize("outcome", Outcome)
def test_with_trust_nobody_else_can_have_ended_it(outcome: Outcome) -> None:
    by_standing = {standing: told(outcome, standing, may_be_own=True) for standing in Standing}
    assert by_standing == {
        Standing.HELD: None,
        Standing.EXPIRED: None,
        Standing.SUCCEEDED: "succeeded",
        Standing.FAILED: "failed",
        Standing.CANCELED: "canceled",
        Standing.GONE: "succeeded" if outcome in COMPLETIONS else "failed" if outcome in FAILURES else None,
        Standing.ENDED: "queued" if outcome in REQUEUES else None,
    }
