"""JSON in and out: strict on the way in, so that what was stored comes back equal from every SDK and backend."""

from __future__ import annotations

import json
import json.encoder
import re
from typing import Any

from cairnq.pure import deepjson, records
from cairnq.pure.errors import SerializationError


def _record(value: Any) -> dict[str, Any]:
    fields = records.as_object(value)
    _refuse_odd_keys(fields, type(value).__name__)
    return fields


_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_record)
_write: Any = json.encoder.c_make_encoder and json.encoder.c_make_encoder(  # type: ignore[attr-defined]
    None, _record, json.encoder.encode_basestring, None, ":", ",", False, False, False
)
"""What `_encoder` makes anew for each value, where the interpreter has it. It takes a circle for endless nesting."""
# An escaped NUL: \u0000 after an even number of backslashes.
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def encode(value: Any, what: str = "value") -> str:
    """The JSON text of `value`; a dataclass in it is an object of its fields.

    Raises `SerializationError` for what JSON cannot hold (NaN, bytes, a set, a datetime, a circular list, a key
    that is no string) and for what PostgreSQL's jsonb refuses (NUL characters and lone surrogates).
    `what` names the value in the message.
    """
    if value is None:
        return "null"
    try:
        _refuse_odd_keys(value, what)
        text = _text_of(value)
    except RecursionError as error:
        raise SerializationError(f"{what} is nested too deeply for JSON, or holds itself") from error
    except (TypeError, ValueError) as error:
        raise SerializationError(f"{what} is not JSON: {error}") from error
    if "\\u0000" in text and _NUL.search(text):
        raise SerializationError(f"{what} holds a NUL character (\\u0000), which PostgreSQL cannot store in JSON")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise SerializationError(
                f"{what} holds a lone surrogate (\\u{ord(text[error.start]):04x}), which is not valid Unicode"
            ) from error
    return text


def _text_of(value: Any) -> str:
    if _write is not None:
        try:
            return "".join(_write(value, 0))
        except (RecursionError, TypeError, ValueError):
            pass  # `_encoder` says what is wrong
    return _encoder.encode(value)


def decode(text: str | None) -> Any:
    """The value of a JSON text that the database holds; None for SQL's null."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except (RecursionError, ValueError):  # nested, or an integer written, beyond the interpreter's limits
        return deepjson.loads(text)


def size_of(text: str) -> int:
    """Bytes of a JSON text in UTF-8, without encoding the common ASCII case."""
    return len(text) if text.isascii() else len(text.encode())


def _refuse_odd_keys(value: Any, what: str) -> None:
    """json.dumps turns the key 1 into "1" without a word; what comes back would not be equal."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise SerializationError(f"{what} is not JSON: the key {key!r} is not a string")
            if isinstance(inner, (dict, list, tuple)):
                _refuse_odd_keys(inner, what)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            if isinstance(inner, (dict, list, tuple)):
                _refuse_odd_keys(inner, what)
