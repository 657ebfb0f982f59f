"""Events as lines."""

from __future__ import annotations

import json
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import cairnq
import cairnq_supervisor
from cairnq_supervisor.pure.rendering import _LEVELS, _SENTENCES, Level, Occurrence, as_json, as_line, as_text

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


ANY = st.text(st.characters(), max_size=60)
FACTS = st.dictionaries(
    st.sampled_from(["queue", "reason", "raised", "error", "traceback", "stack", "name", "task_id", "app"]),
    ANY | st.lists(ANY, max_size=2) | st.integers(),
)
EVENTS = st.builds(Occurrence, st.just(0.0), st.sampled_from([*_SENTENCES, "task.strange"]), FACTS)


@given(EVENTS)
def test_nothing_in_a_fact_can_steer_a_terminal_or_pass_for_an_event(occurrence):
    first, *below = as_text(occurrence).split("\n")
    assert first == as_line(occurrence)
    assert first.startswith("00:00:00.000 ")
    assert all(line.startswith("  ") for line in below)
    assert all(line.isprintable() for line in [first, *below])


@given(EVENTS)
def test_json_is_one_line_of_ascii_that_comes_back(occurrence):
    line = as_json(occurrence)
    assert line.isascii()
    assert line.isprintable()
    document = json.loads(line)
    assert all(document[name] == value for name, value in occurrence.fields.items())


def test_a_reason_of_many_lines_has_its_first_in_the_sentence():
    text = as_text(Occurrence(0.0, "reload.failed", {"reason": "app does not import:\n  File x\nBad: \x1b[31m"}))
    assert text.split("\n")[0].endswith("the old workers stay: app does not import:")
    assert text.split("\n")[1:] == ["    File x", r"  Bad: \x1b[31m"]


def test_a_line_has_an_end():
    assert len(as_line(Occurrence(0.0, "task.strange", {"name": "x" * 100_000}))) < 20_000


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
