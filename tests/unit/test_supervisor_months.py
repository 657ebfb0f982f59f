"""A host that runs for months: what the supervisor keeps for a process goes with the process."""

from __future__ import annotations

import gc

import pytest

from cairnq_supervisor.loop.child import Child
from cairnq_supervisor.loop.incarnation import Incarnation
from cairnq_supervisor.loop.reactor import Timer
from cairnq_supervisor.pure.keeper_messages import Settle
from cairnq_supervisor.pure.settings import QueueSettings, Settings
from tests.support.stage import Stage

SETTINGS = Settings(
    app="shop:registry",
    queues=(QueueSettings("default", processes=1, lease=6.0, max_age=1e8, stall_timeout=1e6),),
    database="sqlite:///nowhere.db",
    boot_timeout=1e6,
)


class Months(Stage):
    """A worker that takes a task, blocks on it, and dies: again and again."""

    def __init__(self):
        super().__init__(SETTINGS)
        self.fleet.start()
        self.all_become_ready()

    def all_become_ready(self):
        self.turn()
        for child in self.world.unreaped:
            self.become_ready(child)
        self.turn()

    def one_life(self):
        (worker,) = self.world.workers()
        worker.table.last_progress = self.now
        self.take_tasks(1)
        for _ in range(6):
            self.now += 2.0
            self.turn()
            self.let_the_keeper_work()
            self.turn()
        self.end(worker, signal=9)
        self.turn()
        self.let_the_keeper_work()
        self.all_become_ready()

    def kept(self):
        """Objects that stand for a process, or for a deadline."""
        gc.collect()
        found = [type(thing) for thing in gc.get_objects() if isinstance(thing, Child | Incarnation | Timer)]
        return {kind.__name__: found.count(kind) for kind in (Child, Incarnation, Timer)}


@pytest.fixture
def months():
    months = Months()
    yield months
    assert months.journal.heard("supervisor.fault") == []
    months.leave()
    months.close()


def test_hundreds_of_deaths_leave_no_more_behind_than_ten(months):
    for _ in range(10):
        months.one_life()
    before = months.kept()
    for _ in range(150):
        months.one_life()
    blocked = months.journal.heard("worker.blocked")
    assert len(blocked) == len({event["worker_id"] for event in blocked}) == 160
    settled = [message for keeper in months.world.keepers() for message in keeper.told if isinstance(message, Settle)]
    assert len(settled) == 160
    after = months.kept()
    assert after["Child"] <= before["Child"] + 1
    assert after["Incarnation"] <= before["Incarnation"] + 1
    assert after["Timer"] <= before["Timer"] + 70, "but for cancelled ones, of which a few may stand about"
