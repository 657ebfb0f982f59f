"""The real supervisor over model children that die, hang and answer late: whatever they do, its promises hold."""

from __future__ import annotations

from collections import Counter

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cairnq_supervisor.pure.keeper_messages import Lend, Sampled, Settle
from cairnq_supervisor.pure.lifecycle import FleetState, SeatState
from cairnq_supervisor.pure.messages import Admit, BootFailed, Drain, Drained, Quiesce, Resume
from cairnq_supervisor.pure.settings import QueueSettings, Settings
from tests.support.stage import Stage

QUEUES = ("a", "b")
SETTINGS = Settings(
    app="shop:registry",
    queues=(QueueSettings("a", processes=2, lease=6.0), QueueSettings("b", processes=1, lease=6.0)),
    database="sqlite:///nowhere.db",
    drain_timeout=10.0,
    boot_timeout=20.0,
)
MISDEEDS = ("exit 0", "exit 1", "SIGKILL", "hang up", "cannot boot")
LONGEST_STOP = 10.0 + 1.5 + 3.0 + 1.0 + 2 * 2.5
"""Seconds: the drain, the kill, what the dead held, a keeper's goodbye and its own hang, and turns of this test."""


class Machine(Stage, RuleBasedStateMachine):
    def __init__(self):
        RuleBasedStateMachine.__init__(self)
        Stage.__init__(self, SETTINGS)
        self.stuck = set()

    @initialize(fairly=st.booleans())
    def begin(self, fairly):
        self.fleet.start()
        self.turn()
        if fairly:
            self.carry_on(2)

    # What children do.

    @rule(tasks=st.integers(0, 4))
    def carry_on(self, tasks):
        """Everybody does what is expected, some take a task, and a little time passes."""
        for child in self.world.unreaped:
            self.become_ready(child)
        self.let_the_keeper_work()
        self.let_the_killed_die()
        self.now += 0.1
        self.turn()
        self.take_tasks(tasks)

    @rule(which=st.integers(0, 9), late=st.booleans())
    def one_becomes_ready(self, which, late):
        waiting = [child for child in self.world.unreaped if child.can_act and not child.is_ready]
        if waiting:
            self.become_ready(waiting[which % len(waiting)])
        self.reach(late=late)

    @rule(which=st.integers(0, 9))
    def one_becomes_ready_too_late(self, which):
        """Its answer is on the way when it is given up."""
        waiting = [seat for seat in self.fleet.workers if seat.state is SeatState.STARTING]
        if waiting:
            seat = waiting[which % len(waiting)]
            self.become_ready(next(child for child in self.world.workers() if child.pid == seat.pid))
            seat.kill("it takes too long")
        self.reach(late=False)

    @rule(which=st.integers(0, 9), unended=st.integers(0, 1), late=st.booleans())
    def say_that_it_drained(self, which, unended, late):
        """Truly, or holding calls that it cannot end."""
        leaving = [child for child in self.world.workers() if child.can_act and child.is_dismissed]
        if leaving:
            child = leaving[which % len(leaving)]
            if unended:
                self.stuck.add(child)
            else:
                self.finish_all(child)
            child.say(Drained(unended))
        self.reach(late=late)

    @rule(which=st.integers(0, 9), late=st.booleans())
    def leave_in_order(self, which, late):
        leaving = [child for child in self.world.unreaped if child.can_act and child.is_dismissed]
        if leaving:
            child = leaving[which % len(leaving)]
            self.finish_all(child)
            self.end(child, code=0)
        self.reach(late=late)

    @rule(which=st.integers(0, 9), how=st.sampled_from(MISDEEDS), late=st.booleans())
    def misbehave(self, which, how, late):
        able = [child for child in self.world.unreaped if child.can_act]
        if not able:
            return
        child = able[which % len(able)]
        match how:
            case "exit 0":
                self.end(child, code=0)
            case "exit 1":
                self.end(child, code=1)
            case "SIGKILL":
                self.end(child, signal=9)
            case "hang up":
                child.hang_up()
            case "cannot boot" if not child.is_ready:
                child.say(BootFailed(78, "no such module"))
                self.end(child, code=78)
        self.reach(late=late)

    @rule()
    def the_killed_die(self):
        self.let_the_killed_die()

    @rule()
    def the_keeper_works(self):
        self.let_the_keeper_work()

    @rule(due=st.integers(0, 30), suspects=st.integers(0, 3))
    def sample(self, due, suspects):
        for keeper in self.world.keepers():
            keeper.say(Sampled({"a": [due, 0, None, suspects]}))
        self.turn()

    # What the system and the operator do.

    @rule(refuses=st.booleans())
    def have_processes_or_not(self, refuses):
        self.world.refuses = refuses

    @rule(seconds=st.sampled_from([0.5, 2.0, 11.0, 61.0]))
    def pass_time(self, seconds):
        self.now += seconds
        self.turn()

    @rule(
        order=st.sampled_from(["quiesce", "resume", "pause", "unpause", "more", "fewer", "replace", "reload", "kill"]),
        which=st.integers(0, 9),
        late=st.booleans(),
    )
    def order(self, order, which, late):
        supervisor, roster, seats = self.supervisor, self.fleet.roster, self.fleet.workers
        match order:
            case "quiesce" | "resume":
                getattr(supervisor, order)()
            case "pause" | "unpause" if self.is_working:
                roster.pause(QUEUES[which % 2], paused=order == "pause")
            case "more" if len(seats) < 8:
                supervisor.scale(1)
            case "fewer":
                supervisor.scale(-1)
            case "replace" if seats and self.is_working:
                roster.replace(seats[which % len(seats)], "it is old")
            case "kill" if seats:
                seats[which % len(seats)].kill("its loop does not turn")
            case "reload":
                supervisor.reload_accepted(SETTINGS, QUEUES[: which % 2], None)
        self.reach(late=late)

    @precondition(lambda self: self.supervisor._state is FleetState.RUNNING)
    @rule(hasten=st.booleans())
    def stop(self, hasten):
        (self.supervisor.hasten if hasten else self.supervisor.drain)("a test")
        self.is_settled = False

    # What must be true, once the supervisor has read what there was.

    @invariant()
    def nothing_went_wrong_inside(self):
        assert self.journal.heard("supervisor.fault") == []

    @invariant()
    def no_worker_is_forked_once_the_fleet_leaves(self):
        assert self.forked_late == []

    @invariant()
    def a_live_seat_has_one_process_and_no_other_has_any(self):
        if not self.is_settled:
            return
        seats = [self.fleet.keeper, *self.fleet.workers]
        pids = Counter(child.pid for child in self.world.unreaped)
        assert Counter(seat.pid for seat in seats if seat.live) == pids
        assert all(seat.pid is None for seat in seats if not seat.live)

    @invariant()
    def a_seat_that_is_not_wanted_gets_no_other_process(self):
        for seat in self.fleet.workers:
            if not seat.wanted:
                assert seat.state in (SeatState.DRAINING, SeatState.KILLED, SeatState.STOPPED)

    @invariant()
    def who_is_to_die_is_killed_and_who_was_killed_is_to_die(self):
        if not self.is_settled:
            return
        by_pid = {seat.pid: seat for seat in [self.fleet.keeper, *self.fleet.workers]}
        for child in self.world.unreaped:
            assert child.killed == (by_pid[child.pid].state is SeatState.KILLED)
            assert child.killed or child not in self.stuck or not child.hears
            assert child.killed or child.is_ready or self.now - self.born_at[child.pid] < SETTINGS.boot_timeout

    @invariant()
    def a_child_is_let_in_once_when_it_is_ready_and_never_after_its_dismissal(self):
        for child in self.world.unreaped:
            told = [type(message) for message in child.told]
            assert told.count(Admit) <= int(child.is_ready)
            if Drain in told:
                assert child.table is None or Admit in told
                assert not {Admit, Resume, Quiesce} & set(told[told.index(Drain) :])

    @invariant()
    def who_is_paused_claims_nothing_and_who_is_ready_claims(self):
        if not self.is_settled:
            return
        by_pid = {seat.pid: seat for seat in self.fleet.workers}
        for child in self.world.workers():
            seat = by_pid[child.pid]
            if self.fleet.roster.is_paused(seat.queue.name) or seat.state is SeatState.QUIESCING:
                assert not child.claims
            elif seat.state is SeatState.READY and child.can_act and child.hears:
                assert child.claims

    @invariant()
    def what_the_dead_held_is_the_keepers_until_it_is_done(self):
        if not self.is_settled:
            return
        done = {fields["worker_id"] for fields in self.journal.heard("worker.forgotten")}
        open_duties = set(self.fleet.keeper.duties)
        assert self.held_at_death <= done | open_duties
        keeper = next((child for child in self.world.keepers() if child.can_act and child.hears), None)
        if keeper is not None and self.fleet.keeper.state in (SeatState.STARTING, SeatState.READY):
            told = keeper.told
            assert open_duties <= {message.worker_id for message in told if isinstance(message, Settle)}
            lent = {message.worker_id for message in told if isinstance(message, Lend)}
            assert {child.worker_id for child in self.world.workers()} <= lent

    @invariant()
    def suspects_run_one_at_a_time_and_get_no_process_once_the_fleet_leaves(self):
        apart = [seat for queue in QUEUES for seat in self.fleet.roster.quarantine(queue)]
        assert all(seat.queue.concurrency == 1 for seat in apart)
        assert self.is_working or apart == []

    @invariant()
    def each_queue_has_its_places_and_two_are_in_one_only_while_it_is_handed_over(self):
        roster = self.fleet.roster
        if not self.is_working:
            return
        for queue in QUEUES:
            numbers = [seat.number for seat in roster.of(queue) if seat.wanted]
            current = roster._current if roster._current and roster._current.old.queue.name == queue else None
            awaited = int(current is not None and current.new is None)
            assert len(set(numbers)) + awaited == roster.wanted(queue)
            assert len(numbers) == len(set(numbers)) or current is not None

    # The end: nobody answers any more but the keeper, and the supervisor stops all the same.

    def teardown(self):
        try:
            if self.supervisor._reactor._heap or self.world.children:
                self.come_to_an_end()
        finally:
            self.close()

    def come_to_an_end(self):
        self.world.refuses = False
        self.supervisor.drain("the end")
        began = self.now
        while not self.supervisor._reactor._stopped:
            assert self.now - began <= LONGEST_STOP, (self.supervisor._state, self.fleet.keeper.state)
            self.let_the_killed_die()
            for keeper in self.world.keepers():
                self.become_ready(keeper)
            self.let_the_keeper_work()
            self.now += 0.5
            self.turn()
        assert self.world.unreaped == []
        self.what_the_dead_held_is_the_keepers_until_it_is_done()
        if any(not duty.settled for duty in self.fleet.keeper.duties.values()):
            assert self.journal.heard("drain.incomplete")
            assert self.supervisor._code != 0


TestMachine = Machine.TestCase
# Shrinking would outlast the limit of a test; the history that failed is printed as it was.
TestMachine.settings = settings(
    max_examples=150,
    stateful_step_count=50,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    report_multiple_bugs=False,
)
