"""What a worker says about its lease table, and how seldom."""

from __future__ import annotations

import pytest

from cairnq.run.leases import LeaseTable
from cairnq_supervisor.pure.messages import Exhausting, Holding
from cairnq_supervisor.roles.watched import WatchedTable

LEASE = 6.0


class Worker:
    def __init__(self):
        self.now = 100.0
        self.said = []
        buffer = memoryview(bytearray(LeaseTable.size_for(8)))
        self.table = WatchedTable(buffer, 8, lease=LEASE, concurrency=3, say=self.said.append, clock=lambda: self.now)

    def hold(self):
        return self.table.hold("task", 1, lease_s=LEASE, sent=self.now)


@pytest.fixture
def worker():
    return Worker()


def test_the_first_lease_is_announced_and_the_next_ones_are_not(worker):
    for _ in range(3):
        worker.hold()
    assert worker.said == [Holding()]


def test_a_worker_that_flutters_speaks_once_in_a_sixth_of_a_lease(worker):
    for _ in range(30):
        worker.table.free(worker.hold())
        worker.now += LEASE / 60
    assert worker.said == [Holding()] * 3


def test_full_hands_after_a_wake_are_told_once(worker):
    worker.table.woken()
    slots = [worker.hold() for _ in range(4)]
    assert worker.said == [Holding(), Exhausting()]
    worker.table.free(slots[0])
    worker.hold()
    assert len(worker.said) == 2


def test_full_hands_without_a_wake_are_nobodys_business(worker):
    for _ in range(4):
        worker.hold()
    assert Exhausting() not in worker.said


def test_a_worker_whose_lease_ran_out_asks_for_a_beat_whatever_it_has_said_before(worker):
    worker.table.free(worker.hold())
    worker.table.run_out(worker.now)
    assert worker.said == [Holding()] * 2
    assert not worker.table.is_kept
