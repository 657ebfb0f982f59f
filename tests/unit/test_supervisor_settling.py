"""What a dead worker's lease table means for each of its tasks."""

from __future__ import annotations

import json

import pytest

from cairnq.pure.models import Outcome
from cairnq.run.leases import LeaseState, LeaseTable
from cairnq_supervisor.pure.evidence import culprit
from cairnq_supervisor.pure.keeper_messages import Settle
from cairnq_supervisor.roles.settling import settlement_of, sweep_times


def duty(*, released: bool = False, overrun: tuple[str, ...] = ()) -> Settle:
    return Settle(
        worker_id="worker_dead",
        since=0.0,
        horizon=30.0,
        lease=30.0,
        reason="worker default/0 died: SIGKILL",
        details={"exit_code": None, "signal": 9},
        released=released,
        overrun=overrun,
        max_run_ms=1000,
        retry_backoff_ms=1000,
        retry_backoff_max_ms=30_000,
    )


def table(**states: LeaseState) -> LeaseTable:
    """A worker's, as its death left it: the state of each task by its name, one call for each that has not ended."""
    left = LeaseTable.private(16)
    for name, state in states.items():
        slot = left.hold(name, 1, lease_s=30.0, sent=0.0)
        if state is not LeaseState.CLAIMED:
            left.start(slot, 1.0)
        if state is LeaseState.ENDED:
            left.end(slot)
    left.in_flight_calls = sum(state is not LeaseState.ENDED for state in states.values())
    return left


CLAIMED, STARTED, ENDED = LeaseState.CLAIMED, LeaseState.STARTED, LeaseState.ENDED


def blamed(left: LeaseTable) -> str | None:
    found = culprit(left.entries(), calls=left.in_flight_calls)
    return found.task_id if found is not None else None


@pytest.mark.parametrize(
    ("states", "alone"),
    [
        ({"a": STARTED}, "a"),
        ({"a": STARTED, "b": STARTED}, None),
        ({"a": STARTED, "b": CLAIMED, "c": CLAIMED}, "a"),
        ({"a": STARTED, "b": ENDED}, "a"),
        ({"a": STARTED, "b": STARTED, "c": ENDED}, None),
        ({"a": ENDED}, "a"),
        ({"a": ENDED, "b": CLAIMED}, "a"),
        ({"a": ENDED, "b": ENDED}, None),
        ({"a": CLAIMED}, None),
        ({}, None),
    ],
)
def test_alone_is_who_had_started_and_nobody_beside_it(states: dict[str, LeaseState], alone: str | None) -> None:
    assert blamed(table(**states)) == alone


def test_nobody_was_alone_beside_a_call_that_outlived_its_lease() -> None:
    """A plain function past its time-out, or a handler that went on after `ctx.succeed`: no entry names it."""
    left = table(a=STARTED)
    left.in_flight_calls = 2
    assert blamed(left) is None


def test_what_is_held_ahead_hides_no_call_that_outlived_its_lease() -> None:
    left = table(a=STARTED, b=CLAIMED, c=CLAIMED, d=CLAIMED)
    left.in_flight_calls = 2
    assert blamed(left) is None


def test_what_is_held_ahead_is_no_call_beside_the_one_that_ran() -> None:
    left = table(a=STARTED, b=CLAIMED, c=CLAIMED)
    left.in_flight_calls = 1
    assert blamed(left) == "a"


def test_a_call_that_was_counted_out_just_before_its_outcome_was_chosen_was_alone() -> None:
    left = table(a=STARTED)
    left.in_flight_calls = 0
    assert blamed(left) == "a"


def test_what_was_on_its_way_back_unstarted_is_given_back_and_not_to_blame() -> None:
    left = LeaseTable.private(1)
    left.end(left.hold("a", 1, lease_s=30.0, sent=0.0))
    [entry] = left.entries()
    assert blamed(left) is None
    assert settlement_of(entry, duty(), guilty=None).outcome is Outcome.RELEASE


@pytest.mark.parametrize(
    ("state", "alone", "released", "outcome"),
    [
        (STARTED, True, False, Outcome.CRASH),
        (STARTED, False, False, Outcome.SUSPECT),
        (CLAIMED, False, False, Outcome.RELEASE),
        (ENDED, True, False, Outcome.CRASH),
        (ENDED, False, False, Outcome.SUSPECT),
        (STARTED, True, True, Outcome.INTERRUPT),
        (ENDED, True, True, Outcome.INTERRUPT),
        (CLAIMED, False, True, Outcome.RELEASE),
    ],
)
def test_every_state_of_a_lease_has_its_outcome(
    state: LeaseState, alone: bool, released: bool, outcome: Outcome
) -> None:
    [entry] = table(a=state).entries()
    settlement = settlement_of(entry, duty(released=released), guilty=entry if alone else None)
    assert (settlement.task_id, settlement.attempt, settlement.outcome) == ("a", 1, outcome)


def test_a_crash_says_how_the_process_ended_and_waits_for_the_backoff() -> None:
    [entry] = table(a=STARTED).entries()
    settlement = settlement_of(entry, duty(), guilty=None)
    error = json.loads(settlement.body or "")
    assert (error["code"], error["details"]) == ("worker_crashed", {"exit_code": None, "signal": 9})
    assert 500 <= settlement.delay_ms < 1000


def test_of_a_worker_that_was_ended_for_one_calls_sake_only_that_call_fails() -> None:
    guilty, neighbour = table(guilty=STARTED, neighbour=STARTED).entries()
    order = duty(released=True, overrun=("guilty",))
    assert settlement_of(guilty, order, guilty=None).outcome is Outcome.FAIL
    assert settlement_of(neighbour, order, guilty=None).outcome is Outcome.INTERRUPT


def test_where_the_guilty_one_is_known_those_that_had_returned_are_given_back_unmarked() -> None:
    left = table(a=ENDED, b=ENDED, c=STARTED, d=CLAIMED)
    entries = left.entries()
    guilty = culprit(entries, calls=left.in_flight_calls)
    settlements = [settlement_of(entry, duty(), guilty=guilty) for entry in entries]
    assert {settlement.task_id: settlement.outcome for settlement in settlements} == {
        "a": Outcome.INTERRUPT,
        "b": Outcome.INTERRUPT,
        "c": Outcome.CRASH,
        "d": Outcome.RELEASE,
    }
    assert json.loads(settlements[0].body or "")["code"] == "worker_crashed", "where it had but one attempt"


def test_sweeps_come_early_then_by_thirds_of_a_lease_and_last_at_the_horizon() -> None:
    assert sweep_times(30.0, 30.0) == [0.2, 1.0, 10.0, 20.0, 30.0]
    assert sweep_times(30.0, 1.0) == [0.2, 1.0]
