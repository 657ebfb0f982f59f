"""JSON is strict on the way in and forgiving on the way out: what a database holds can always be read."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cairnq import SerializationError
from cairnq.pure import deepjson, jsonio

TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=30,
)


@given(JSON)
def test_what_goes_in_comes_out(value: Any) -> None:
    text = jsonio.encode(value)
    assert jsonio.decode(text) == value
    assert json.loads(text) == value


@given(JSON)
def test_the_slow_reader_agrees_with_the_fast_one(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=2), json.dumps(value, ensure_ascii=False)):
        slow = deepjson.loads(text)
        assert slow == json.loads(text)
        assert json.dumps(slow) == json.dumps(value), "types too"


@given(st.text(st.characters(), max_size=20))
def test_any_string_is_stored_or_refused_by_name(value: str) -> None:
    storable = "\x00" not in value and not any("\ud800" <= char <= "\udfff" for char in value)
    try:
        text = jsonio.encode({"key": [value]})
    except SerializationError as error:
        assert not storable, str(error)
    else:
        assert storable
        text.encode()
        assert json.loads(text) == {"key": [value]}


@pytest.mark.parametrize("value", ["\\u0000", "\\\\u0000", "a\\", "\\\\", "\x01\x1f\x7f", "\u2028", "\\u000", "u0000"])
def test_what_only_looks_like_a_nul_passes(value: str) -> None:
    assert jsonio.decode(jsonio.encode(value)) == value
    assert jsonio.decode(jsonio.encode({value: value})) == {value: value}


@pytest.mark.parametrize("value", ["\x00", "\\\x00", "\\\\\x00", "a\x00b"])
def test_a_nul_is_refused_wherever_it_stands(value: str) -> None:
    for holder in (value, [value], {value: 1}, {"a": {"b": [value]}}):
        with pytest.raises(SerializationError, match="the thing holds a NUL character"):
            jsonio.encode(holder, "the thing")


def circular_list() -> list[Any]:
    value: list[Any] = []
    value.append({"inside": value})
    return value


@dataclass
class Holder:
    held: Any = None


def circular_record() -> Holder:
    value = Holder()
    value.held = value
    return value


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (math.nan, "not JSON"),
        ([-math.inf], "not JSON"),
        ({"a": b"x"}, "bytes"),
        ({1, 2}, "set"),
        ({1: "a"}, "the key 1 is not a string"),
        ({"a": [{None: 1}]}, "the key None is not a string"),
        ({True: 1}, "the key True is not a string"),
        (circular_list(), "nested too deeply for JSON, or holds itself"),
        (circular_record(), "not JSON: Circular reference detected"),
        (Holder([{1: 2}]), "the key 1 is not a string"),
        (nested(100_000), "nested too deeply"),
        ("\udfff", r"lone surrogate \(\\udfff\)"),
        (10**5000, "not JSON"),
        (object(), "object"),
    ],
    ids=[f"{number}" for number in range(14)],
)
def test_what_json_cannot_hold_is_named(value: Any, says: str) -> None:
    with pytest.raises(SerializationError, match=f"the payload .*{says}"):
        jsonio.encode(value, "the payload")


def test_null_in_json_and_null_in_sql_are_read_alike() -> None:
    assert jsonio.decode(None) is None
    assert jsonio.decode("null") is None
    assert jsonio.decode('"null"') == "null"


@pytest.mark.parametrize("depth", [500, 990, 1000, 5000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a": ', "}"), ('[{"a": ', "}]")])
def test_any_depth_can_be_read(depth: int, opening: str, closing: str) -> None:
    value = jsonio.decode(opening * depth + '["end", -1.5e3]' + closing * depth)
    for _ in range(depth * opening.count("[") + depth * opening.count("{")):
        [value] = value.values() if isinstance(value, dict) else value
    assert value == ["end", -1500.0]


def test_an_integer_of_any_length_can_be_read() -> None:
    digits = "9" * 100_000
    assert jsonio.decode(f'{{"n": [{digits}, -{digits}]}}') == {"n": [10**100_000 - 1, 1 - 10**100_000]}


@pytest.mark.parametrize("text", ["", "[", "]", "[1", "{", "nul", "1 2", "'a'", '"a'])
def test_what_is_no_json_is_told(text: str) -> None:
    for loads in (jsonio.decode, deepjson.loads):
        with pytest.raises(json.JSONDecodeError):
            loads(text)


@given(TEXT)
def test_a_size_is_the_bytes_of_utf_8(text: str) -> None:
    assert jsonio.size_of(text) == len(text.encode())
