"""Dataclasses as JSON objects: written field by field, read back by the annotations of their class."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from cairnq.pure.errors import InvalidArgument


def is_record(kind: Any) -> bool:
    """Whether it is a dataclass itself, not an instance of one."""
    return isinstance(kind, type) and is_dataclass(kind)


def holds_record(kind: Any) -> bool:
    """Whether `restore` would change anything under this type."""
    return is_record(kind) or any(holds_record(inner) for inner in get_args(kind))


def as_object(value: Any) -> dict[str, Any]:
    """The fields of an instance, one level deep. Raises `TypeError`, as an encoder's `default` has to."""
    if not is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")
    return {field.name: getattr(value, field.name) for field in fields(value)}


def restore(kind: Any, value: Any) -> Any:
    """`value` with its objects as the dataclasses that `kind` names, in lists, tuples, mappings and options too.

    A field that the class does not have is left out: the sender may be newer. Raises `InvalidArgument` where one is
    missing, or where the value is no object. What `kind` says otherwise is not checked.
    """
    if is_record(kind):
        return _instance(kind, value)
    if not holds_record(kind):
        return value
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        some = [option for option in inner if is_record(option)]
        return restore(some[0], value) if len(some) == 1 and isinstance(value, dict) else value
    if isinstance(value, list):
        if origin is tuple:
            kinds = inner[:1] * len(value) if inner[1:] == (...,) else inner
            return tuple(restore(*pair) for pair in zip(kinds, value, strict=False))
        return [restore(inner[0], item) for item in value] if len(inner) == 1 else value
    if isinstance(value, dict) and len(inner) == 2:
        return {key: restore(inner[1], item) for key, item in value.items()}
    return value


def _instance(kind: Any, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise InvalidArgument(f"a {kind.__name__} is an object, not {type(value).__name__}: {value!r:.100}")
    hints = _hints(kind)
    given = {name: restore(hint, value[name]) for name, hint in hints.items() if name in value}
    try:
        return kind(**given)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"this is no {kind.__name__}: {error}") from error


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind) if field.init}
