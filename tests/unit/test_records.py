"""A dataclass goes out as an object and comes back as itself."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from cairnq import InvalidArgument, Registry, SerializationError, TaskDef, TaskError
from cairnq.pure import jsonio, records


@dataclass
class Line:
    article: str
    amount: int = 1


@dataclass
class Order:
    number: int
    lines: list[Line]
    gift: Line | None = None
    by_name: dict[str, Line] = field(default_factory=dict)
    pair: tuple[Line, ...] = ()
    rest: Any = None


FULL = Order(1, [Line("a"), Line("b", 2)], Line("c"), {"d": Line("d")}, (Line("e"), Line("f")), {"free": [1, None]})


@pytest.mark.parametrize("value", [FULL, Order(2, []), Line("x")])
def test_it_comes_back_equal(value: Any) -> None:
    assert records.restore(type(value), jsonio.decode(jsonio.encode(value))) == value


def test_it_may_stand_anywhere_in_json() -> None:
    assert json.loads(jsonio.encode({"lines": [Line("a")]})) == {"lines": [{"article": "a", "amount": 1}]}
    assert records.restore(list[Line], [{"article": "a"}]) == [Line("a")]
    assert records.restore(tuple[int, Line], [1, {"article": "a"}]) == (1, Line("a"))


def test_fields_of_a_newer_sender_are_left_out_and_missing_ones_take_their_default() -> None:
    assert records.restore(Line, {"article": "a", "colour": "red"}) == Line("a")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"amount": 1}, "this is no Line: .*missing 1 required positional argument: 'article'"),
        (["a"], r"a Line is an object, not list: \['a'\]"),
        (None, "a Line is an object, not NoneType: None"),
    ],
)
def test_what_does_not_fit_is_told(value: Any, reason: str) -> None:
    with pytest.raises(InvalidArgument, match=reason):
        records.restore(Line, value)


@pytest.mark.parametrize("kind", [int, dict[str, int], list[str], Any, None, int | None, tuple[int, ...], "Line"])
def test_types_without_a_dataclass_change_nothing(kind: Any) -> None:
    assert not records.holds_record(kind)
    for value in ([1, [2]], {"a": {"b": 1}}, None, 5):
        assert records.restore(kind, value) is value


def test_what_json_cannot_hold_is_refused_inside_too() -> None:
    for value in (Line({1: 2}), Line(float("nan")), Line({1})):  # type: ignore[arg-type]
        with pytest.raises(SerializationError):
            jsonio.encode([value])
    with pytest.raises(SerializationError, match="type is not JSON"):
        jsonio.encode(Line)


def test_a_handler_says_what_it_takes_by_its_definition_or_its_annotation() -> None:
    registry = Registry()

    @registry.task(TaskDef[Line, None]("defined"))
    def defined(ctx, payload): ...  # type: ignore[no-untyped-def]

    @registry.task("annotated")
    def annotated(ctx: Any, payload: Line) -> None: ...

    @registry.task("plain")
    def plain(ctx: Any, payload: dict[str, int]) -> None: ...

    @registry.task("unresolved")
    def unresolved(ctx: Any, payload: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    @registry.task("without a payload")
    def without(ctx: Any) -> None: ...

    given = {"article": "a"}
    taken = {name: handler.payload(given) for name, handler in registry.handlers.items()}
    assert taken == {
        "defined": Line("a"),
        "annotated": Line("a"),
        "plain": given,
        "unresolved": given,
        "without a payload": given,
    }
    with pytest.raises(TaskError, match="does not fit") as caught:
        registry.handlers["defined"].payload({})
    assert (caught.value.code, caught.value.retryable) == ("invalid_payload", False)
    assert registry.only(["defined"]).handlers["defined"] is registry.handlers["defined"]
    assert set(registry.only(["plain"]).handlers) == {"plain"}
    assert registry.only(None) is registry
