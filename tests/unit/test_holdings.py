"""What a worker remembers of attempts that it let go, and for how long."""

from __future__ import annotations

import dataclasses

import pytest

from cairnq.pure.models import ClaimedTask, Held
from cairnq.pure.quota import PayloadBudget
from cairnq.run.holdings import Holdings
from cairnq.run.leases import LeaseTable
from cairnq.store import rows
from tests.unit.test_rows import ROW

LEASE = 30.0


class Worker:
    def __init__(self) -> None:
        self.now = 100.0
        self.holdings = Holdings(LeaseTable.private(4), PayloadBudget(None), LEASE, lambda: self.now)

    def lose(self, number: int) -> Held:
        """It held this one, and closes it without knowing what became of it."""
        task = dataclasses.replace(rows.task(ROW), id=f"task_{number}", attempt=1)
        (attempt,) = self.holdings.hold([ClaimedTask(task, 2)], self.now)
        attempt.flag_lost()
        attempt.close(None)
        return attempt.held


@pytest.fixture
def worker() -> Worker:
    return Worker()


def test_what_it_let_go_is_not_unknown_to_it_while_its_lease_may_live_on(worker: Worker) -> None:
    lost = worker.lose(1)
    assert worker.holdings.unknown([lost, Held("task_2", 1)]) == [Held("task_2", 1)]
    worker.now += 2 * LEASE
    assert worker.holdings.unknown([lost]) == [lost]


def test_a_worker_that_loses_leases_for_months_remembers_the_last_ones_alone(worker: Worker) -> None:
    for number in range(1000):
        worker.now += LEASE / 2
        worker.lose(number)
    assert len(worker.holdings._let_go) == 4
