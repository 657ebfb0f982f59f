"""Arguments are checked before anything is written: a refusal says which, what it was, and what would be right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cairnq import InvalidArgument, SerializationError, TaskDef
from cairnq.pure import arguments
from cairnq.pure.arguments import Submission

REFUSALS: dict[str, tuple[Callable[[], Any], str]] = {
    "no text": (lambda: arguments.text(7, "queue"), "queue must be a string, not int: 7"),
    "bytes": (lambda: arguments.text(b"q", "queue"), "queue must be a string, not bytes: b'q'"),
    "empty": (lambda: arguments.text("", "queue"), "queue must not be empty"),
    "NUL": (lambda: arguments.text("a\x00", "queue"), r"queue holds a NUL character, .*: 'a\\x00'"),
    "surrogate": (lambda: arguments.text("\ud83d", "queue"), "queue holds a lone surrogate"),
    "too long": (lambda: arguments.text("é" * 6, "queue", max_bytes=10), "queue is 12 bytes long, at most 10 fit"),
    "bool": (lambda: arguments.integer(True, "limit", least=0, most=9), "limit must be an integer, not bool: True"),
    "float": (lambda: arguments.integer(1.0, "limit", least=0, most=9), "limit must be an integer, not float: 1.0"),
    "below": (lambda: arguments.integer(-1, "limit", least=0, most=9), "limit must be from 0 to 9, got -1"),
    "above": (lambda: arguments.integer(10, "limit", least=0, most=9), "limit must be from 0 to 9, got 10"),
    "status": (lambda: arguments.status("Queued"), "unknown status 'Queued'; it is one of queued, running,"),
    "status list": (lambda: arguments.status(["queued"]), r"unknown status \['queued'\]"),
    "live status": (lambda: arguments.terminal_status("queued"), "only finished tasks .*'queued'.*canceled, failed"),
    "statuses": (lambda: arguments.terminal_status(["failed"]), r"only finished tasks .*\['failed'\]"),
    "string of names": (lambda: arguments.names("abc", "names"), "names must be a list of strings, not the string"),
    "no names": (lambda: arguments.names(3, "names"), "names must be a list of strings, not int"),
    "bad name": (lambda: arguments.names(["a", ""], "names"), "an item of names must not be empty"),
    "nested names": (lambda: arguments.names([["a"]], "names"), "an item of names must be a string, not list"),
    "progress": (lambda: arguments.progress(1.01), "progress must be a number from 0.0 to 1.0, got 1.01"),
    "progress bool": (lambda: arguments.progress(True), "progress must be a number"),
    "progress NaN": (lambda: arguments.progress(float("nan")), "progress must be a number"),
    "delays": (lambda: arguments.delay(0, 0), "give delay_ms or run_at_delay_ms, not both"),
    "lease": (lambda: arguments.lease(0), "lease_ms must be from 1 to"),
    "conflict": (lambda: Submission.of("x", conflict="Reuse"), "unknown conflict strategy 'Reuse'; it is one of"),
    "conflict list": (lambda: Submission.of("x", conflict=["reuse"]), "unknown conflict strategy"),
    "metadata": (lambda: Submission.of("x", metadata="m"), "metadata must be a mapping, not str"),
    "root": (lambda: Submission.of("x", root_id=""), "root_id must not be empty"),
    "parent": (lambda: Submission.of("x", parent_id=5), "parent_id must be a string, not int"),
    "name": (lambda: Submission.of(None), "the task's name must be a string, not NoneType"),
    "definition": (lambda: Submission.of(TaskDef("")), "the task's name must not be empty"),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_a_refusal_says_what_and_why(what: str) -> None:
    check, says = REFUSALS[what]
    with pytest.raises(InvalidArgument, match=says):
        check()


def test_a_refusal_of_a_long_text_is_short() -> None:
    with pytest.raises(InvalidArgument) as refused:
        arguments.text("k" * 100_000, "key", max_bytes=1000)
    assert len(str(refused.value)) < 200


@given(st.integers())
def test_an_integer_in_bounds_passes_as_it_is(value: int) -> None:
    assert arguments.integer(value, "n", least=value, most=value) == value


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1))
def test_any_other_text_passes_as_it_is(value: str) -> None:
    assert arguments.text(value, "name") == value
    assert arguments.storable(value, "message") == value
    assert arguments.names([value, "x", value], "names") == list(dict.fromkeys([value, "x"]))


def test_what_is_left_out_is_left_out() -> None:
    assert arguments.optional_text(None, "key") is None
    assert arguments.storable("", "message") == ""
    assert (arguments.status(None), arguments.terminal_status(None), arguments.progress(None)) == (None, None, None)
    assert arguments.names([], "names") == []
    assert (arguments.delay(None, None), arguments.delay(5, None), arguments.delay(None, 6)) == (0, 5, 6)


def test_a_submission_is_encoded_and_has_its_id() -> None:
    one = Submission.of("x", {"a": [1]}, metadata={"m": None})
    assert (one.payload, one.metadata) == ('{"a":[1]}', '{"m":null}')
    assert one.id.startswith("task_")
    assert one.id != Submission.of("x").id
    assert (Submission.of("x").payload, Submission.of("x").metadata) == ("{}", "{}")
    assert Submission.of("x", False).payload == "false"
    assert Submission.of("x", []).payload == "[]"


def test_what_is_no_json_is_named() -> None:
    with pytest.raises(SerializationError, match="the payload is not JSON"):
        Submission.of("x", {1})
    with pytest.raises(SerializationError, match="metadata holds a NUL"):
        Submission.of("x", metadata={"\x00": 1})
