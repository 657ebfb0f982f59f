"""Units of resources: told as histories, and hammered by a state machine."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from cairnq_supervisor.pure.treasury import SLICE, Treasury


class Host:
    """Workers that obey at once, unless they are busy."""

    def __init__(self):
        self.treasury = Treasury()
        self.now = 0.0
        self.units = {}
        self.busy = set()
        self.asked = []

    def obey(self, orders):
        for order in orders:
            if order.grant:
                assert all(order.unit not in units for units in self.units.values()), "handed out twice"
                self.units.setdefault(order.worker_id, set()).add(order.unit)
            elif order.worker_id in self.busy:
                self.asked.append(order)
            else:
                self.give(order)

    def give(self, order):
        self.units[order.worker_id].discard(order.unit)
        self.obey(self.treasury.returned(order.worker_id, order.resource, order.unit, now=self.now))

    def join(self, name, queue="gpu", amount=2, most=4):
        self.units.setdefault(name, set())
        self.obey(self.treasury.join(name, queue, {"gpu": amount}, most=most, now=self.now))

    def leave(self, name):
        self.units.pop(name, None)
        self.asked = [order for order in self.asked if order.worker_id != name]
        self.obey(self.treasury.leave(name, now=self.now))

    def sample(self, **due):
        self.obey(self.treasury.sampled(due, now=self.now))

    @property
    def shares(self):
        return {name: len(units) for name, units in self.units.items()}


def test_units_are_spread_evenly_as_workers_come():
    host = Host()
    host.join("a", amount=4)
    assert host.shares == {"a": 4}
    host.join("b", amount=4)
    assert host.shares == {"a": 2, "b": 2}
    host.join("c", amount=4)
    assert sorted(host.shares.values()) == [1, 1, 2]


def test_a_worker_gets_no_more_than_it_can_have_calls():
    host = Host()
    host.join("a", amount=10, most=3)
    assert host.shares == {"a": 3}


def test_what_a_dead_worker_held_goes_to_the_others():
    host = Host()
    host.join("a", amount=1)
    host.join("b", amount=1)
    assert host.shares == {"a": 1, "b": 0}
    host.leave("a")
    assert host.shares == {"b": 1}


def test_a_unit_in_use_moves_when_its_call_has_ended_and_not_before():
    host = Host()
    host.join("a", amount=2)
    host.busy.add("a")
    host.join("b", amount=2)
    assert host.shares == {"a": 2, "b": 0}
    host.give(host.asked.pop())
    assert host.shares == {"a": 1, "b": 1}


def test_queues_that_share_a_single_unit_take_turns_while_both_have_work():
    host = Host()
    host.join("a", "train", amount=1)
    host.join("b", "infer", amount=1)
    turns = []
    for _ in range(4):
        host.now += SLICE
        host.sample(train=3, infer=3)
        turns.append(host.shares["a"])
    assert turns == [0, 1, 0, 1]


def test_a_worker_for_suspects_gets_a_unit_in_its_turn_though_its_queue_has_one():
    host = Host()
    host.join("usual", "train", amount=1)
    host.join("s0", "train (suspects)", amount=1, most=1)
    assert host.shares == {"usual": 1, "s0": 0}
    host.now += SLICE
    host.sample(**{"train": 5, "train (suspects)": 1})
    assert host.shares == {"usual": 0, "s0": 1}
    host.leave("s0")
    assert host.shares == {"usual": 1}


def test_a_queue_keeps_its_unit_for_a_slice_and_while_nobody_else_has_work():
    host = Host()
    host.join("a", "train", amount=1)
    host.join("b", "infer", amount=1)
    host.now += SLICE - 1
    host.sample(infer=3)
    assert host.shares["a"] == 1
    host.now += 100
    host.sample(train=3)
    assert host.shares["a"] == 1


def test_a_worker_that_is_to_leave_gets_nothing_and_keeps_what_it_uses():
    host = Host()
    host.join("old", amount=1)
    host.treasury.retire("old")
    host.join("new", amount=1)
    assert host.shares == {"old": 1, "new": 0}
    host.leave("old")
    assert host.shares == {"new": 1}


def test_a_lowered_capacity_grants_nothing_while_more_is_held():
    host = Host()
    host.join("a", amount=3, most=3)
    host.busy.add("a")
    host.join("b", amount=1)
    assert host.shares == {"a": 3, "b": 0}
    while host.asked:
        host.give(host.asked.pop())
    assert host.treasury.held() == {"gpu": {"capacity": 1, "held": sum(host.shares.values())}}


def test_a_stranger_returns_nothing():
    assert Treasury().returned("nobody", "gpu", 0, now=0.0) == []


class Machine(RuleBasedStateMachine):
    """No unit is ever with two workers, and none lies idle while somebody could use it."""

    def __init__(self):
        super().__init__()
        self.host = Host()
        self.count = 0

    @rule(queue=st.sampled_from(["x", "y"]), most=st.integers(1, 4))
    def join(self, queue, most):
        self.count += 1
        self.host.join(f"w{self.count}", queue, amount=3, most=most)

    @rule(data=st.data())
    def leave(self, data):
        if self.host.units:
            self.host.leave(data.draw(st.sampled_from(sorted(self.host.units))))

    @rule(data=st.data())
    def be_busy_or_not(self, data):
        if self.host.units:
            self.host.busy ^= {data.draw(st.sampled_from(sorted(self.host.units)))}

    @rule()
    def end_a_call(self):
        if self.host.asked:
            self.host.give(self.host.asked.pop())

    @rule(x=st.integers(0, 2), y=st.integers(0, 2), passed=st.floats(0, 20))
    def sample(self, x, y, passed):
        self.host.now += passed
        self.host.sample(x=x, y=y)

    @invariant()
    def held_agrees(self):
        units = [unit for units in self.host.units.values() for unit in units]
        assert len(units) == len(set(units)) <= 3
        if self.host.units:
            assert self.host.treasury.held()["gpu"]["held"] == len(units)

    @invariant()
    def nothing_lies_idle(self):
        if self.host.units:
            free = 3 - sum(self.host.shares.values())
            members = self.host.treasury._members["gpu"].values()
            assert free == 0 or all(member.kept >= member.most for member in members)


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
