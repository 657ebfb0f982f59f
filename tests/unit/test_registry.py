"""Registering handlers: every spelling, and every mistake by name."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from cairnq import InvalidArgument, Registry, TaskDef


async def asynchronous(ctx: Any, payload: Any) -> None: ...


def plain(ctx: Any) -> None: ...


def test_a_function_registers_under_its_own_name_and_is_returned_unchanged() -> None:
    registry = Registry()
    assert registry.task(asynchronous) is asynchronous
    assert registry.task()(plain) is plain
    assert list(registry.handlers) == ["asynchronous", "plain"]


def test_a_name_a_task_def_and_options_are_taken() -> None:
    registry = Registry(resources={"gpu": 1})
    registry.task("one", batch=3)(plain)
    registry.task(TaskDef[Any, Any]("two"), concurrency=2, resource="gpu", forget=True)(asynchronous)
    registry.register(TaskDef[Any, Any]("three"), plain)
    one, two, three = registry.handlers.values()
    assert (one.name, one.batch, one.has_quota) == ("one", 3, True)
    assert (two.name, two.concurrency, two.resource, two.forget, two.has_quota) == ("two", 2, "gpu", True, True)
    assert (three.name, three.has_quota, three.forget) == ("three", False, False)


class Callable:
    async def __call__(self, ctx: Any, payload: Any) -> None: ...

    def method(self, ctx: Any) -> None: ...


@pytest.mark.parametrize(
    ("fn", "takes_payload", "is_async"),
    [
        (asynchronous, True, True),
        (plain, False, False),
        (lambda _ctx, _payload: None, True, False),
        (lambda *_args: None, True, False),
        (lambda _ctx, _payload=None: None, True, False),
        (Callable(), True, True),
        (Callable().method, False, False),
        (functools.partial(asynchronous, payload=1), False, True),
    ],
)
def test_what_a_handler_takes_and_where_it_runs_is_read_from_it(fn: Any, takes_payload: bool, is_async: bool) -> None:
    registry = Registry()
    registry.register("x", fn)
    handler = registry.handlers["x"]
    assert (handler.takes_payload, handler.is_async) == (takes_payload, is_async)


def test_a_batch_handler_takes_the_list_alone() -> None:
    registry = Registry()
    registry.register("x", plain, batch=2)
    assert not registry.handlers["x"].takes_payload
    with pytest.raises(InvalidArgument, match=r"'y'.*\(contexts\), a list"):
        registry.register("y", asynchronous, batch=2)


def generator(ctx: Any) -> Any:
    yield 1


async def async_generator(ctx: Any) -> Any:
    yield 1


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("", plain), {}, "a handler needs a name"),
        (("  ", plain), {}, "a handler needs a name"),
        (("a\x00b", plain), {}, "without NUL"),
        ((None, plain), {}, "not None"),
        (("x", plain), {"batch": 0}, "'x': batch must be an integer of at least 1, not 0"),
        (("x", plain), {"batch": True}, "'x': batch must be an integer"),
        (("x", plain), {"concurrency": -1}, "'x': concurrency must be an integer of at least 1, not -1"),
        (("x", plain), {"concurrency": "2"}, "not '2'"),
        (("x", plain), {"resource": "tpu"}, r"'x': resource 'tpu' is not declared \(declared: 'gpu'\)"),
        (("x", 42), {}, "'x': 42 is not callable"),
        (("x", min), {}, "cannot be read"),
        (("x", lambda: None), {}, r"'x': it must take \(ctx, payload\) or \(ctx\), not \(\)"),
        (("x", lambda _a, _b, _c: None), {}, r"not \(_a, _b, _c\)"),
        (("x", lambda *, _ctx: None), {}, r"not \(\*, _ctx\)"),
        (("x", generator), {}, "generator"),
        (("x", async_generator), {}, "generator"),
    ],
)
def test_a_bad_registration_says_what_is_wrong(arguments: Any, options: Any, message: str) -> None:
    registry = Registry(resources={"gpu": 1})
    with pytest.raises(InvalidArgument, match=message):
        registry.register(*arguments, **options)
    assert not registry.handlers


def test_a_name_is_registered_once() -> None:
    registry = Registry()
    registry.register("x", plain)
    with pytest.raises(InvalidArgument, match="'x' is already registered"):
        registry.register("x", asynchronous)
    assert registry.handlers["x"].fn is plain


def test_a_decorated_thing_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="or be given a name"):
        Registry().task(42)


def test_unregistering_what_is_not_there_is_refused() -> None:
    registry = Registry()
    registry.register("x", plain)
    version = registry.version
    registry.unregister("x")
    assert registry.version > version
    with pytest.raises(InvalidArgument, match="no handler named 'x'"):
        registry.unregister("x")


@pytest.mark.parametrize(
    ("resources", "message"), [({"": 1}, "a resource needs a name"), ({"gpu": 0}, "'gpu' must be")]
)
def test_a_bad_resource_is_refused(resources: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        Registry(resources=resources)
