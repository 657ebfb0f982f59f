"""Whom a wake goes to: the keeper rings for what is due, the supervisor for whoever has its hands full."""

from __future__ import annotations

import os

import pytest

from cairnq.run.leases import LeaseTable
from cairnq_supervisor.pure import waking
from cairnq_supervisor.pure.keeper_messages import Beat, Lend, LendBell, Unlent
from cairnq_supervisor.pure.messages import Exhausting
from cairnq_supervisor.pure.settings import QueueSettings, Settings
from cairnq_supervisor.roles.beating import Lent
from cairnq_supervisor.roles.bells import SILENCE, Bells
from cairnq_supervisor.system.bell import Bell
from tests.support.stage import Stage

CONCURRENCY = 4
SETTINGS = Settings(
    app="shop:registry",
    queues=(QueueSettings("default", processes=2, concurrency=CONCURRENCY, stall_timeout=1e6),),
    database="sqlite:///nowhere.db",
    boot_timeout=1e6,
)


class Tower:
    """Workers by number, and what the keeper has of them: a duplicate of each bell."""

    def __init__(self) -> None:
        self.now = 100.0
        self.tables: dict[str, Lent] = {}
        self.bells = Bells(self.tables, lambda: self.now)
        self._heard_by: dict[str, Bell] = {}

    def hang(self, *workers: str, queue: str = "default") -> None:
        for worker in workers:
            table = LeaseTable.private(1)
            table.is_claiming, table.concurrency = 1, CONCURRENCY
            self.tables[worker] = Lent(table, 30.0)
            bell = self._heard_by[worker] = Bell()
            self.bells.hang(worker, queue, os.dup(bell.fd))

    def show(self, worker: str, **gauges: float) -> None:
        for name, value in gauges.items():
            setattr(self.tables[worker].table, name, value)

    def rung(self) -> set[str]:
        return {worker for worker, bell in self._heard_by.items() if bell.hear()}

    def close(self) -> None:
        for worker, bell in self._heard_by.items():
            self.bells.take_down(worker)
            bell.close()


@pytest.fixture
def tower():
    tower = Tower()
    yield tower
    tower.close()


def test_a_bell_that_was_rung_often_rings_once():
    bell = Bell()
    assert bell.hear() == 0
    for _ in range(3):
        bell.ring()
    assert (bell.hear(), bell.hear()) == (3, 0)
    bell.close()


def test_a_bell_that_nobody_hears_does_not_hold_up_who_rings_it():
    bell = Bell()
    os.eventfd_write(bell.fd, 2**64 - 2)
    bell.ring()
    assert bell.hear() == 2**64 - 2
    bell.close()


@pytest.mark.parametrize(
    ("one", "other", "rung"),
    [
        ({}, {}, {"one"}),
        ({"in_flight_calls": 1}, {}, {"other"}),
        ({"in_flight_calls": 1, "units": 1}, {}, {"other"}),
        ({}, {"units": 1}, {"other"}),
        ({"shut": 1}, {"in_flight_calls": 2}, {"other"}),
        ({"shut": 1}, {"in_flight_calls": CONCURRENCY}, {"one"}),
        ({"is_claiming": 0}, {"in_flight_calls": 3}, {"other"}),
        ({"is_claiming": 0}, {"in_flight_calls": CONCURRENCY}, set()),
    ],
)
def test_of_two_that_have_room_the_one_that_is_likelier_to_take_it_is_rung_for(tower, one, other, rung):
    tower.hang("one", "other")
    tower.show("one", **one)
    tower.show("other", **other)
    tower.bells.ring_one("default")
    assert tower.rung() == rung


@pytest.mark.parametrize(
    ("turned_at", "others_calls", "rung"),
    [
        (97.9, 3, {"living"}),
        (98.1, 3, {"first"}),
        (0.0, 3, {"first"}),
        (97.9, CONCURRENCY, {"first"}),
    ],
)
def test_one_whose_loop_is_silent_is_rung_for_only_where_nobody_else_has_room(tower, turned_at, others_calls, rung):
    tower.hang("first", "living")
    tower.show("first", last_progress=turned_at)
    tower.show("living", in_flight_calls=others_calls, last_progress=tower.now)
    tower.bells.ring_one("default")
    assert tower.rung() == rung


def test_what_is_still_due_is_rung_for_to_all_of_its_queue_that_have_room(tower):
    tower.hang("idle", "busy", "full", "paused")
    tower.hang("stranger", queue="mail")
    tower.show("busy", in_flight_calls=1, shut=1)
    tower.show("full", in_flight_calls=CONCURRENCY)
    tower.show("paused", is_claiming=0)
    tower.bells.ring_all("default")
    assert tower.rung() == {"idle", "busy"}


def test_the_dead_are_not_rung_for(tower):
    tower.hang("dead", "living")
    tower.show("living", in_flight_calls=3)
    tower.bells.take_down("dead")
    tower.bells.ring_one("default")
    tower.bells.ring_one("nobodys")
    assert tower.rung() == {"living"}


def test_who_waits_for_a_beat_is_not_rung_and_holds_recovery_up_only_while_its_loop_turns(tower):
    tower.hang("waits", "claims")
    tower.show("waits", ran_out_at=tower.now, last_progress=tower.now)
    tower.show("claims", in_flight_calls=CONCURRENCY - 1, last_progress=tower.now)
    tower.bells.ring_one("default")
    tower.bells.ring_all("default")
    assert tower.rung() == {"claims"}
    waits = tower.tables["waits"].table
    assert waking.waits_for_a_beat(waits, tower.now)
    assert not waking.waits_for_a_beat(tower.tables["claims"].table, tower.now)
    assert not waking.waits_for_a_beat(waits, tower.now + waking.SILENT_AFTER + 1), "it hangs, or is dead"
    tower.show("waits", beaten_at=tower.now)
    assert not waking.waits_for_a_beat(waits, tower.now)
    tower.bells.ring_one("default")
    assert tower.rung() == {"waits"}


def test_a_bell_whose_table_did_not_arrive_is_given_up(tower):
    tower.hang("living")
    reader, writer = os.pipe()
    tower.bells.hang("lost", "default", writer)
    assert os.read(reader, 1) == b"", "the keeper has closed its end"
    os.close(reader)
    tower.bells.ring_all("default")
    assert tower.rung() == {"living"}


class History(Stage):
    """Two workers and a keeper on a model clock."""

    def __init__(self):
        super().__init__(SETTINGS)
        self.fleet.start()
        self.all_become_ready()

    def all_become_ready(self):
        self.turn()
        for child in self.world.unreaped:
            if child.table is not None:
                child.table.is_claiming, child.table.concurrency = 1, CONCURRENCY
            self.become_ready(child)
        self.turn()

    def keeper(self):
        [keeper] = self.world.keepers()
        return keeper


@pytest.fixture
def history():
    history = History()
    yield history
    assert history.journal.heard("supervisor.fault") == []
    history.leave()
    history.close()


def lent(keeper):
    """Whose table, and whose bell, in the order in which they were lent."""
    return [(type(one), one.worker_id) for one in keeper.told if isinstance(one, Lend | LendBell)]


def test_every_keeper_is_lent_the_bells_of_all_workers(history):
    ids = [child.worker_id for child in history.world.workers()]
    expected = [(kind, worker_id) for worker_id in ids for kind in (Lend, LendBell)]
    assert lent(history.keeper()) == expected
    history.end(history.keeper(), signal=9)
    history.turn()
    history.now += 60
    history.all_become_ready()
    assert lent(history.keeper()) == expected


def test_a_worker_whose_table_did_not_reach_the_keeper_claims_nothing_and_is_lent_again(history):
    first, second = history.world.workers()
    history.keeper().told.clear()
    history.keeper().say(Unlent(first.worker_id, is_kept=False), Unlent(second.worker_id, is_kept=True))
    history.turn()
    assert (first.table.is_kept, second.table.is_kept) == (False, True)
    assert lent(history.keeper()) == []
    history.now += 1.0
    history.turn()
    again = [(kind, child.worker_id) for child in (first, second) for kind in (Lend, LendBell)]
    assert sorted(lent(history.keeper()), key=again.index) == again
    assert isinstance(history.keeper().told[-1], Beat), "which lets it claim again"


def test_a_worker_that_is_gone_is_not_lent_again(history):
    first, _ = history.world.workers()
    history.keeper().say(Unlent(first.worker_id, is_kept=False))
    history.turn()
    history.end(first, signal=9)
    history.turn()
    history.keeper().told.clear()
    history.now += 1.0
    history.turn()
    assert first.worker_id not in [worker_id for _, worker_id in lent(history.keeper())]


def test_a_wake_is_passed_on_by_one_that_has_its_hands_full(history):
    first, second = history.world.workers()
    first.table.in_flight_calls = CONCURRENCY
    first.say(Exhausting())
    history.turn()
    assert (first.plan.bell.hear(), second.plan.bell.hear()) == (0, 1)
    second.table.in_flight_calls = CONCURRENCY
    second.say(Exhausting())
    history.turn()
    assert (first.plan.bell.hear(), second.plan.bell.hear()) == (0, 0)


def test_while_the_supervisor_is_silent_nobody_is_woken_for_nobody_would_beat_what_is_claimed(tower):
    tower.hang("one", "other")
    tower.now += SILENCE + 1
    tower.bells.ring_one("default")
    tower.bells.ring_all("default")
    assert tower.rung() == set()
    tower.bells.supervisor_spoke()
    tower.bells.ring_all("default")
    assert tower.rung() == {"one", "other"}
