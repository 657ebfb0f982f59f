"""One outage of many children is two lines."""

from __future__ import annotations

from cairnq_supervisor.loop.outages import FAILED, RECOVERED, Outages


class Story:
    def __init__(self):
        self.lines = []
        self.outages = Outages(lambda name, **_fields: self.lines.append(name))

    def tell(self, *words):
        for child, word in (word.split() for word in words):
            if word == "dies":
                self.outages.forget(child)
            else:
                self.outages.heard(child, FAILED if word == "fails" else RECOVERED, {})
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
