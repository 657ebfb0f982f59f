"""When beats are ordered, and when the keeper is asked for a sign of life, as histories on a model clock."""

from __future__ import annotations

import itertools

import pytest

from cairnq_supervisor.pure.keeper_messages import Beat, Listening, Policy
from cairnq_supervisor.pure.messages import Holding, Watched
from cairnq_supervisor.pure.settings import QueueSettings, Settings
from tests.support.stage import Stage


def settings(**leases):
    """One worker for each queue."""
    queues = tuple(QueueSettings(name, lease=lease, stall_timeout=1e6) for name, lease in leases.items())
    return Settings(
        app="shop:registry", queues=queues, database="sqlite:///nowhere.db", boot_timeout=1e6, drain_timeout=1e6
    )


class History(Stage):
    """A fleet whose children become ready when the test says so."""

    def __init__(self, **leases):
        super().__init__(settings(**leases))
        self.fleet.start()
        self.all_become_ready()

    def all_become_ready(self):
        self.turn()
        for child in self.world.unreaped:
            self.become_ready(child)
        self.turn()

    def reload(self, **leases):
        self.supervisor.reload_accepted(settings(**leases), (), None)

    def pass_time(self, seconds, *, answering=True):
        for _ in range(seconds):
            self.now += 1
            self.turn()
            if answering:
                self.let_the_keeper_work()
            self.turn()

    def come_to_an_end(self):
        self.supervisor.drain("the end")
        while not self.supervisor._reactor._stopped:
            for child in self.world.workers():
                self.end(child, signal=9)
            self.let_the_keeper_work()
            self.let_the_killed_die()
            self.now += 1
            self.turn()
        self.close()

    @property
    def keeper(self):
        return next(self.world.keepers())

    @property
    def beats(self):
        return [message.ordered_at for message in self.keeper.told if isinstance(message, Beat)]

    def longest_pause(self, since):
        """Between two beats, or to now."""
        ordered = [since, *(at for at in self.beats if at > since), self.now]
        return max(later - earlier for earlier, later in itertools.pairwise(ordered))

    @property
    def lease_of_the_keeper(self):
        """The one that it works by."""
        told = [message.lease for message in self.keeper.told if isinstance(message, Policy)]
        return [self.keeper.plan.settings.shortest_lease, *told][-1]

    def hold(self, worker, lease):
        worker.table.hold("task", 1, lease_s=lease, sent=self.now)

    def worker(self, queue):
        seat = next(self.fleet.roster.of(queue))
        return next(child for child in self.world.workers() if child.pid == seat.pid)


@pytest.fixture
def begin():
    histories = []

    def make(**leases):
        histories.append(History(**leases))
        return histories[-1]

    yield make
    for history in histories:
        assert history.journal.heard("supervisor.fault") == []
        history.come_to_an_end()


@pytest.mark.parametrize(("before", "after"), [(30, 300), (300, 30), (30, 30)])
def test_a_reload_that_changes_the_lease_keeps_what_old_and_new_workers_hold(begin, before, after):
    history = begin(default=before)
    old = history.worker("default")
    history.hold(old, before)
    old.say(Holding())
    history.turn()
    history.pass_time(1)
    began = history.now
    history.reload(default=after)
    history.all_become_ready()
    new = next(child for child in history.world.workers() if child is not old)
    history.hold(new, after)
    new.say(Holding())
    history.turn()
    history.pass_time(400)
    assert history.longest_pause(began) <= min(before, after) / 3 + 1


def test_the_longer_lease_counts_once_the_old_workers_are_gone(begin):
    history = begin(default=30)
    old = history.worker("default")
    history.reload(default=300)
    history.all_become_ready()
    history.end(old, code=0)
    history.turn()
    new = history.worker("default")
    history.hold(new, 300)
    new.say(Holding())
    history.turn()
    began = history.now
    history.pass_time(399)
    assert len([at for at in history.beats if at > began]) == 3


def test_beats_go_on_while_a_worker_with_a_long_lease_may_begin_to_hold_without_a_word(begin):
    """It says so once in a sixth of its own lease, which is longer than a third of its neighbour's."""
    history = begin(short=30, long=300)
    worker = history.worker("long")
    worker.say(Holding())
    history.turn()
    history.pass_time(49)
    history.hold(worker, 300)
    began = history.now
    history.pass_time(300)
    assert history.longest_pause(began) <= 100


def test_an_idle_fleet_stops_beating(begin):
    history = begin(default=30)
    worker = history.worker("default")
    worker.say(Holding())
    history.turn()
    history.pass_time(20)
    ordered = len(history.beats)
    history.pass_time(300)
    assert len(history.beats) == ordered


def test_a_worker_that_claims_nothing_until_somebody_beats_gets_its_beat_though_nobody_holds_anything(begin):
    history = begin(default=30)
    worker = history.worker("default")
    worker.table.run_out(history.now)
    worker.say(Holding())
    history.turn()
    history.pass_time(100)
    assert len(history.beats) >= 3
    worker.table.beaten_at = history.now
    history.pass_time(20)
    ordered = len(history.beats)
    history.pass_time(300)
    assert len(history.beats) == ordered


def test_a_fleet_whose_last_worker_is_gone_stops_beating(begin):
    history = begin(default=30)
    worker = history.worker("default")
    history.hold(worker, 30)
    worker.say(Holding())
    history.turn()
    history.world.refuses = True
    history.end(worker, signal=9)
    history.pass_time(60)
    assert not history.beats


def watched(worker):
    return [message.watched for message in worker.told if isinstance(message, Watched)]


def test_a_keeper_that_hangs_while_nobody_holds_anything_is_replaced_and_its_successor_is_watched_too(begin):
    history = begin(default=3600)
    worker = history.worker("default")
    history.pass_time(60)
    assert history.journal.heard("keeper.killed") == []
    for _ in range(2):
        keeper = history.keeper
        keeper.say(Listening(True))
        history.turn()
        assert watched(worker)[-1] is True
        history.pass_time(60, answering=False)
        assert keeper.killed
        assert watched(worker)[-1] is False, "a process that cannot be killed at once still holds nobody back"
        history.let_the_killed_die()
        history.turn()
        history.pass_time(60)
        history.all_become_ready()
    reasons = [fields["reason"] for fields in history.journal.heard("keeper.killed")]
    assert reasons == ["it does not answer", "it does not answer"]


class TestTheKeeperWorksByTheShortestLeaseThereIs:
    """It recovers, and is patient, by it."""

    def reload(self, history, lease):
        old = history.worker("default")
        history.reload(default=lease)
        history.all_become_ready()
        return old

    def leave(self, history, worker):
        history.end(worker, code=0)
        history.turn()

    def test_one_that_became_shorter_counts_at_once(self, begin):
        history = begin(default=300)
        self.leave(history, self.reload(history, 30))
        assert history.lease_of_the_keeper == 30

    def test_one_that_became_longer_counts_when_the_last_worker_of_before_is_gone(self, begin):
        history = begin(default=30)
        old = self.reload(history, 300)
        assert history.lease_of_the_keeper == 30
        self.leave(history, old)
        assert history.lease_of_the_keeper == 300

    def test_its_successor_is_told_too(self, begin):
        history = begin(default=30)
        self.reload(history, 300)
        history.end(history.keeper, signal=9)
        history.turn()
        assert history.keeper.plan.settings.shortest_lease == 300
        assert history.lease_of_the_keeper == 30

    def test_the_pause_between_two_keepers_goes_with_it(self, begin):
        history = begin(default=300)
        self.leave(history, self.reload(history, 3))
        for _ in range(5):
            history.end(history.keeper, signal=9)
            history.turn()
            history.now += 3 / 6
            history.turn()
            assert history.keeper.can_act
