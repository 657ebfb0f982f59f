"""One outage of many children is two lines."""

from __future__ import annotations

import pytest

from cairnq_supervisor.loop.outages import FAILED, RECOVERED, Outages
from cairnq_supervisor.pure.keeper_messages import DutyDone, Listening
from cairnq_supervisor.pure.messages import Event
from cairnq_supervisor.pure.settings import QueueSettings, Settings
from tests.support.stage import Stage


class Story:
    def __init__(self):
        self.lines = []
        self.now = 100.0
        self.fields = []
        self.outages = Outages(self.emit, lambda: self.now)

    def emit(self, name, **fields):
        self.lines.append(name)
        self.fields.append(fields)

    def tell(self, *words):
        for child, word in (word.split() for word in words):
            match word:
                case "dies":
                    self.outages.forget(child)
                case "answers":
                    self.outages.answered()
                case _:
                    self.outages.heard(child, FAILED if word == "fails" else RECOVERED, {"operation": "claim"})
        return [line for line in self.lines if not line.endswith("-too")]


def test_the_first_failure_and_the_last_recovery_are_told():
    story = Story()
    assert story.tell("a fails", "b fails", "c fails", "b works", "a works", "c works") == [FAILED, RECOVERED]
    assert len(story.lines) == 6
    assert not story.outages.is_on


def test_a_child_that_fails_in_two_ways_must_recover_from_both():
    story = Story()
    assert story.tell("a fails", "a fails", "a works") == [FAILED]
    assert story.tell("a works") == [FAILED, RECOVERED]


def test_a_child_that_dies_takes_its_outage_with_it():
    story = Story()
    assert story.tell("a fails", "b fails", "a dies", "b works") == [FAILED, RECOVERED]


def test_the_next_outage_is_told_again():
    story = Story()
    assert story.tell("a fails", "a works", "b fails", "b works") == [FAILED, RECOVERED] * 2


def test_a_recovery_without_a_failure_is_told_and_forgotten():
    story = Story()
    assert story.tell("a works", "b fails") == [RECOVERED, FAILED]
    assert story.outages.is_on


def test_one_that_only_the_dead_saw_is_over_when_the_database_has_answered_somebody():
    story = Story()
    assert story.tell("a fails", "a dies") == [FAILED]
    story.now += 7.5
    assert story.tell("database answers") == [FAILED, RECOVERED]
    assert story.fields[-1] == {"operation": "claim", "after_s": 7.5}
    assert story.tell("database answers", "b fails", "b works") == [FAILED, RECOVERED] * 2


def test_while_its_witnesses_die_one_after_the_other_it_is_the_same_outage():
    story = Story()
    assert story.tell("a fails", "a dies", "b fails", "b dies", "c fails") == [FAILED]
    assert story.tell("database answers") == [FAILED], "one of the living says it itself"
    assert story.tell("c works") == [FAILED, RECOVERED]


def test_an_answer_ends_no_outage_of_the_living():
    story = Story()
    assert story.tell("a fails", "b fails", "a dies", "database answers") == [FAILED]
    assert story.tell("b works") == [FAILED, RECOVERED]


SETTINGS = Settings(
    app="shop:registry", queues=(QueueSettings("default", processes=2),), database="sqlite:///nowhere.db"
)


class Fleet(Stage):
    """A worker of it sees an outage, and dies."""

    def __init__(self):
        super().__init__(SETTINGS)
        self.fleet.start()
        self.turn()
        for child in self.world.unreaped:
            self.become_ready(child)
        self.turn()

    def keeper_says(self, message):
        (keeper,) = self.world.keepers()
        keeper.say(message)
        self.turn()

    def one_fails_and_dies(self):
        worker = next(self.world.workers())
        worker.say(Event(FAILED, {"operation": "claim", "error": "DatabaseUnavailable: it is away"}))
        self.turn()
        self.end(worker, signal=9)
        self.turn()

    @property
    def lines(self):
        return [name for name, _ in self.journal.events if name in (FAILED, RECOVERED)]


@pytest.fixture
def fleet():
    fleet = Fleet()
    yield fleet
    assert fleet.journal.heard("supervisor.fault") == []
    fleet.leave()
    fleet.close()


@pytest.mark.parametrize("answer", [Listening(delivers=True), DutyDone("worker_of_before")])
def test_what_a_dead_worker_saw_is_over_when_the_keeper_has_an_answer(fleet, answer):
    fleet.one_fails_and_dies()
    fleet.keeper_says(Listening(delivers=False))
    assert fleet.lines == [FAILED]
    fleet.keeper_says(answer)
    assert fleet.lines == [FAILED, RECOVERED]


def test_what_a_dead_worker_alone_saw_is_over_at_once(fleet):
    fleet.keeper_says(Listening(delivers=True))
    fleet.one_fails_and_dies()
    assert fleet.lines == [FAILED, RECOVERED]
