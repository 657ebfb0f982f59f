"""The lifecycle tables, cell by cell."""

from __future__ import annotations

import itertools

import pytest

from cairnq_supervisor.pure.lifecycle import (
    FLEET_TABLE,
    LIVE,
    SEAT_TABLE,
    FleetAction,
    FleetEvent,
    FleetState,
    SeatAction,
    SeatEvent,
    SeatState,
)

# Columns in the order of SeatEvent; "." stays and does nothing; otherwise the new state and its actions.
SEATS = """
            due     spawn          spawn-failed    ready        ready-quiesced           boot-timeout  quiesce            resume        drain          drained stuck       drain-timeout kill        exited          ended          give-up
starting    .       .              backoff+settle  ready+admit  quiescing+quiesce+admit  killed+kill   .                  .             killed+kill    .       .           .             killed+kill backoff+settle  stopped+settle .
ready       .       .              .               .            .                        .             quiescing+quiesce  .             draining+drain .       .           .             killed+kill backoff+settle  stopped+settle .
quiescing   .       .              .               .            .                        .             .                  ready+resume  draining+drain .       .           .             killed+kill backoff+settle  stopped+settle .
draining    .       .              .               .            .                        .             .                  .             .              .       killed+kill killed+kill   killed+kill backoff+settle  stopped+settle .
killed      .       .              .               .            .                        .             .                  .             .              .       .           .             .           backoff+settle  stopped+settle .
backoff     .       starting+fork  .               .            .                        .             .                  .             stopped        .       .           .             stopped     .               .              failed
failed      .       starting+fork  .               .            .                        .             .                  .             stopped        .       .           .             stopped     .               .              .
stopped     backoff starting+fork  .               .            .                        .             .                  .             .              .       .           .             .           .               .              .
"""  # noqa: E501 - a table is read as a table

FLEETS = """
          all-ready         quiesce           resume          drain           hasten                 hopeless                       workers-gone            keeper-gone
starting  running+announce  starting+quiesce  starting+resume draining+drain  draining+drain+hasten  draining+give-up+drain+hasten  .                       .
running   .                 running+quiesce   running+resume  draining+drain  draining+drain+hasten  .                              .                       .
draining  .                 .                 .               .               draining+hasten        .                              closing+dismiss-keeper  .
closing   .                 .                 .               .               .                      .                              .                       stopped+stop
stopped   .                 .                 .               .               .                      .                              .                       .
"""  # noqa: E501


def cells(table: str) -> list[tuple[str, str, str]]:
    header, *rows = [line.split() for line in table.strip().splitlines()]
    return [(row[0], event, cell) for row in rows for event, cell in zip(header, row[1:], strict=True)]


def test_the_tables_are_complete_rectangles():
    assert set(SEAT_TABLE) == set(itertools.product(SeatState, SeatEvent))
    assert set(FLEET_TABLE) == set(itertools.product(FleetState, FleetEvent))
    assert {(state, event) for state, event, _ in cells(SEATS)} == set(SEAT_TABLE)
    assert {(state, event) for state, event, _ in cells(FLEETS)} == set(FLEET_TABLE)


@pytest.mark.parametrize(("state", "event", "cell"), cells(SEATS))
def test_every_cell_of_a_seat(state, event, cell):
    step = SEAT_TABLE[SeatState(state), SeatEvent(event)]
    target, *actions = [state] if cell == "." else cell.split("+")
    assert step.state == SeatState(target)
    assert step.actions == tuple(SeatAction(action) for action in actions)


@pytest.mark.parametrize(("state", "event", "cell"), cells(FLEETS))
def test_every_cell_of_the_fleet(state, event, cell):
    step = FLEET_TABLE[FleetState(state), FleetEvent(event)]
    target, *actions = [state] if cell == "." else cell.split("+")
    assert step.state == FleetState(target)
    assert step.actions == tuple(FleetAction(action) for action in actions)


def test_a_process_exists_exactly_between_a_fork_and_an_exit():
    for (state, _event), step in SEAT_TABLE.items():
        if SeatAction.FORK in step.actions:
            assert state not in LIVE
            assert step.state in LIVE
        if state in LIVE and step.state not in LIVE:
            assert SeatAction.SETTLE in step.actions


def test_nobody_is_admitted_twice_or_after_being_told_to_leave():
    admitting = {state for (state, _event), step in SEAT_TABLE.items() if SeatAction.ADMIT in step.actions}
    assert admitting == {SeatState.STARTING}


@pytest.mark.parametrize("state", [state for state in SeatState if state in LIVE])
def test_an_unwanted_seat_always_comes_to_rest(state):
    assert SEAT_TABLE[state, SeatEvent.ENDED].state is SeatState.STOPPED
