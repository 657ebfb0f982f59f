"""Events as lines."""

from __future__ import annotations

import json
import re
from pathlib import Path

import cairnq
import cairnq_supervisor
from cairnq_supervisor.pure.rendering import _LEVELS, _SENTENCES, Level, Occurrence, as_json, as_text

PACKAGES = (cairnq, cairnq_supervisor)
SOURCES = [path.read_text() for package in PACKAGES for path in Path(package.__file__).parent.rglob("*.py")]


def test_a_known_event_is_a_sentence():
    occurrence = Occurrence(0.0015, "worker.ready", {"queue": "mail", "slot": 1, "pid": 42})
    assert as_text(occurrence) == "00:00:00.001 info    worker.ready         worker mail/1 is ready (pid 42)"


def test_an_unknown_event_shows_its_facts_on_one_line():
    line = as_text(Occurrence(0.0, "task.strange", {"name": "a b", "text": "x\ny", "count": 3, "empty": ""}))
    assert line.endswith('task.strange         name="a b" text="x\\ny" count=3 empty=""')


def test_a_missing_fact_does_not_cost_the_line():
    assert "worker mail/<no slot>" in as_text(Occurrence(0.0, "worker.ready", {"queue": "mail"}))


def test_json_carries_time_level_and_facts():
    document = json.loads(as_json(Occurrence(1.5, "worker.died", {"queue": "mail", "cause": {1}})))
    assert document == {
        "time": "1970-01-01T00:00:01.500Z",
        "level": "error",
        "event": "worker.died",
        "queue": "mail",
        "cause": "{1}",
    }


def test_an_event_without_a_level_of_its_own_is_news():
    assert Occurrence(0.0, "task.strange").level is Level.INFO


def test_every_event_that_has_a_level_or_a_sentence_is_emitted_somewhere():
    """A seat and a child spell their events with their noun before the dot."""
    elsewhere = [source for source in SOURCES if "_SENTENCES = {" not in source]
    spelled = {name for source in elsewhere for name in re.findall(r'"([a-z]+\.[a-z_-]+)"', source)}
    words = {word for source in elsewhere for word in re.findall(r"noun\}\.([a-z-]+)", source)}
    spelled |= {f"{noun}.{word}" for noun in ("worker", "keeper", "gateway") for word in words}
    assert {*_LEVELS, *_SENTENCES} - spelled == set()
