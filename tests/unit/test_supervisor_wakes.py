"""Whom the supervisor wakes for a task, as histories on a model clock."""

from __future__ import annotations

import pytest

from cairnq_supervisor.pure.messages import Grant, Ready, Uses, Wake
from cairnq_supervisor.pure.settings import QueueSettings, Settings
from tests.support.stage import Stage

CONCURRENCY = 4
SETTINGS = Settings(
    app="shop:registry",
    queues=(QueueSettings("default", processes=2, concurrency=CONCURRENCY, stall_timeout=1e6),),
    database="sqlite:///nowhere.db",
    boot_timeout=1e6,
)


class History(Stage):
    """Two workers that share one unit."""

    def __init__(self):
        super().__init__(SETTINGS)
        self.fleet.start()
        self.all_become_ready()

    def all_become_ready(self):
        self.turn()
        for child in self.world.unreaped:
            if child.table is not None and not child.is_ready:
                child.is_ready = True
                child.say(Uses({"gpu": 1}), Ready())
            self.become_ready(child)
        self.turn()

    def worker(self, slot):
        pid = next(seat.pid for seat in self.fleet.workers if seat.slot == slot)
        return next(child for child in self.world.workers() if child.pid == pid)

    def has_unit(self, slot):
        return Grant("gpu", 0) in self.worker(slot).told

    def wakes(self, slot):
        return self.worker(slot).told.count(Wake())

    def queued(self):
        self.fleet.queued("default")
        self.turn()


@pytest.fixture
def history():
    history = History()
    yield history
    assert history.journal.heard("supervisor.fault") == []
    history.leave()
    history.close()


def test_of_two_that_are_idle_the_one_that_has_the_unit_is_woken(history):
    assert (history.has_unit(0), history.has_unit(1)) == (True, False)
    history.end(history.worker(0), signal=9)
    history.turn()
    history.now += 60
    history.all_become_ready()
    assert (history.has_unit(0), history.has_unit(1)) == (False, True)
    history.queued()
    assert (history.wakes(0), history.wakes(1)) == (0, 1)


def test_of_those_with_room_one_that_has_it_for_every_name_is_woken(history):
    history.take_tasks(1)
    busy, idle = history.worker(0), history.worker(1)
    busy.table.in_flight_calls = 2
    idle.table.shut = 1
    history.queued()
    assert (history.wakes(0), history.wakes(1)) == (1, 0), "the idler one may be unable to take it"
    busy.table.in_flight_calls = CONCURRENCY
    history.queued()
    assert (history.wakes(0), history.wakes(1)) == (1, 1), "it has no room at all"


def test_the_idlest_is_woken_whoever_has_the_unit(history):
    history.take_tasks(1)
    assert history.worker(0).table.in_flight_calls == 1
    history.queued()
    assert (history.wakes(0), history.wakes(1)) == (0, 1)
