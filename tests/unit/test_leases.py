"""The lease table: who sees what, and what a late or torn write cannot do."""

from __future__ import annotations

import mmap
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cairnq.run.leases import Entry, LeaseState, LeaseTable
from cairnq.run.trust import margin, trust_end


def held(table: LeaseTable, number: int = 1, *, sent: float = 100.0) -> int:
    return table.hold(f"task_{number}", 1, lease_s=30.0, sent=sent)


@pytest.mark.parametrize(("lease_s", "expected"), [(0.5, 0.25), (1.5, 0.25), (6.0, 1.0), (30.0, 5.0), (3600.0, 5.0)])
def test_the_margin_is_a_sixth_of_the_lease_within_its_bounds(lease_s: float, expected: float) -> None:
    assert margin(lease_s) == expected
    assert trust_end(10.0, lease_s) == 10.0 + lease_s - expected


def test_a_held_attempt_is_seen_through_another_view_of_the_buffer() -> None:
    buffer = mmap.mmap(-1, LeaseTable.size_for(4))
    holder, keeper = LeaseTable(memoryview(buffer), 4), LeaseTable(memoryview(buffer), 4)
    slot = holder.hold("task_é", 7, lease_s=30.0, sent=100.0)
    [entry] = keeper.entries()
    assert (entry.slot, entry.task_id, entry.attempt, entry.state) == (slot, "task_é", 7, LeaseState.CLAIMED)
    assert (entry.lease_s, entry.sent, entry.trusted_until) == (30.0, 100.0, 125.0)
    assert (holder.held, keeper.held) == (1, 1)
    holder.start(slot, 101.0)
    assert (keeper.entries()[0].state, keeper.entries()[0].started_at) == (LeaseState.STARTED, 101.0)
    holder.end(slot)
    assert keeper.entries()[0].state is LeaseState.ENDED
    other = held(holder, 2)
    assert keeper.held == 2
    holder.free(slot)
    assert keeper.held == 1
    holder.free(other)
    assert keeper.held == 0
    assert keeper.entries() == []
    holder.close()
    keeper.close()
    buffer.close()


def test_a_renewal_extends_the_trust_from_the_instant_it_was_sent() -> None:
    table = LeaseTable.private(2)
    slot = held(table)
    [entry] = table.entries()
    table.renew(slot, entry.generation, sent=110.0, cancel_requested=False)
    assert table.trusted_until(slot) == 135.0
    table.renew(slot, entry.generation, sent=105.0, cancel_requested=False)
    assert table.trusted_until(slot) == 135.0, "an older beat must not take trust back"


def test_a_verdict_on_an_earlier_generation_has_no_effect() -> None:
    table = LeaseTable.private(1)
    slot = held(table, 1)
    old = table.entries()[0].generation
    table.renew(slot, old, sent=110.0, cancel_requested=True)
    table.free(slot)
    assert held(table, 2, sent=50.0) == slot
    assert (table.trusted_until(slot), table.cancel_requested(slot), table.lost(slot)) == (75.0, False, False)
    table.renew(slot, old, sent=500.0, cancel_requested=True)
    table.lose(slot, old)
    assert (table.trusted_until(slot), table.cancel_requested(slot), table.lost(slot)) == (75.0, False, False)


def test_a_lost_lease_stays_lost() -> None:
    table = LeaseTable.private(1)
    slot = held(table)
    generation = table.entries()[0].generation
    table.lose(slot, generation)
    table.renew(slot, generation, sent=200.0, cancel_requested=False)
    assert table.lost(slot)
    assert table.trusted_until(slot) == float("-inf")


def test_a_cancel_request_stays_once_it_was_seen() -> None:
    table = LeaseTable.private(1)
    slot = held(table)
    generation = table.entries()[0].generation
    table.renew(slot, generation, sent=101.0, cancel_requested=True)
    table.renew(slot, generation, sent=102.0, cancel_requested=False)
    assert table.cancel_requested(slot)


def test_the_holder_may_extend_its_own_lease_but_not_shorten_it() -> None:
    table = LeaseTable.private(1)
    slot = held(table)
    table.extend(slot, sent=120.0)
    assert table.trusted_until(slot) == 145.0
    table.extend(slot, sent=90.0)
    assert table.trusted_until(slot) == 145.0


def test_a_slot_whose_writing_was_cut_short_is_left_out() -> None:
    table = LeaseTable.private(2)
    held(table, 1)
    torn = held(table, 2)
    table._ints[table._base(torn)] += 1  # what a death in the middle of `hold` leaves behind
    assert [entry.task_id for entry in table.entries()] == ["task_1"]


def test_a_full_table_and_an_id_that_does_not_fit_are_refused() -> None:
    table = LeaseTable.private(1)
    with pytest.raises(ValueError, match="64 bytes"):
        table.hold("x" * 64, 1, lease_s=30.0, sent=0.0)
    assert table.free_slots == 1
    held(table)
    assert table.free_slots == 0
    with pytest.raises(IndexError):
        held(table)


@pytest.mark.parametrize(
    ("buffer", "capacity", "message"),
    [
        (bytearray(10), 1, "needs a writable buffer"),
        (bytes(LeaseTable.size_for(1)), 1, "needs a writable buffer"),
        (bytearray(LeaseTable.size_for(1)), 0, "at least one"),
    ],
)
def test_a_buffer_that_cannot_be_a_table_is_refused(buffer: bytearray, capacity: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LeaseTable(buffer, capacity)


def test_a_table_is_not_opened_under_another_capacity() -> None:
    buffer = bytearray(LeaseTable.size_for(3))
    LeaseTable(buffer, 3)
    with pytest.raises(ValueError, match="holds a table of 3 leases, not of 2"):
        LeaseTable(buffer, 2)


def test_gauges_are_read_through_another_view() -> None:
    buffer = bytearray(LeaseTable.size_for(1))
    holder, reader = LeaseTable(buffer, 1), LeaseTable(buffer, 1)
    holder.in_flight_calls, holder.in_flight_bytes, holder.loop_lag = 3, 2**40, 0.25
    holder.claimed += 5
    assert (reader.in_flight_calls, reader.in_flight_bytes, reader.loop_lag, reader.claimed) == (3, 2**40, 0.25, 5)
    assert (reader.succeeded, reader.failed, reader.released, reader.concurrency) == (0, 0, 0, 0)


@given(st.lists(st.sampled_from(["hold", "start", "end", "free", "renew", "lose"]), max_size=60))
def test_the_table_agrees_with_a_model(steps: list[str]) -> None:  # noqa: C901 - one case a step
    table, model, number = LeaseTable.private(3), {}, 0
    for step in steps:
        number += 1
        if step == "hold":
            if table.free_slots:
                slot = table.hold(f"task_{number}", number, lease_s=6.0, sent=float(number))
                model[slot] = [f"task_{number}", LeaseState.CLAIMED, number + 5.0, False]
            continue
        if not model:
            continue
        slot = sorted(model)[number % len(model)]
        match step:
            case "start":
                table.start(slot, float(number))
                model[slot][1] = LeaseState.STARTED
            case "end":
                table.end(slot)
                model[slot][1] = LeaseState.ENDED
            case "free":
                table.free(slot)
                del model[slot]
            case "renew" | "lose":
                [generation] = [entry.generation for entry in table.entries() if entry.slot == slot]
                if step == "renew":
                    table.renew(slot, generation, sent=float(number), cancel_requested=False)
                    model[slot][2] = number + 5.0
                else:
                    table.lose(slot, generation)
                    model[slot][3] = True
    seen = {entry.slot: entry for entry in table.entries()}
    assert seen.keys() == model.keys()
    for slot, (task_id, state, trusted_until, lost) in model.items():
        assert (seen[slot].task_id, seen[slot].state) == (task_id, state)
        assert table.lost(slot) == lost
        assert table.trusted_until(slot) == (float("-inf") if lost else trusted_until)


def test_a_reader_in_another_thread_never_sees_a_mixed_identity() -> None:
    table = LeaseTable.private(1)
    mixed: list[Entry] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            mixed.extend(entry for entry in table.entries() if entry.task_id != f"task_{entry.attempt}")

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(20_000):
        slot = table.hold(f"task_{number}", number, lease_s=6.0, sent=0.0)
        table.free(slot)
    stop.set()
    reader.join()
    assert mixed == []
