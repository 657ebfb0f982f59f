"""Reads JSON that `json.loads` gives up on: nested deeper than the interpreter's stack, or with integers of any length.

Slow, and only for what stands in a database already: one odd value of another SDK must not make a claim fail.
Commas and colons are taken as read, for the database has checked the text.
"""

from __future__ import annotations

import re
from decimal import Decimal
from json import JSONDecodeError, JSONDecoder
from typing import Any

_TOKEN = re.compile(r'[ \t\n\r]*(?:([\[{])|([\]}])|(")|(-?\d+)([.eE][-+.\deE]*)?|(true|false|null)|[:,])')
_decoder = JSONDecoder()
_WORDS = {"true": True, "false": False, "null": None}


def loads(text: str) -> Any:
    """The value of a JSON text. Raises `JSONDecodeError`."""
    tree = _Tree()
    position, end = 0, len(text.rstrip(" \t\n\r"))
    while position < end:
        token = _TOKEN.match(text, position)
        if token is None:
            raise JSONDecodeError("no JSON", text, position)
        opening, closing, quote, integer, fraction, word = token.groups()
        position = token.end()
        if quote:
            string, position = _decoder.raw_decode(text, position - 1)
            tree.put(string)
        elif integer:
            # By way of Decimal, which knows no limit of digits.
            tree.put(float(integer + fraction) if fraction else int(Decimal(integer)))
        elif word:
            tree.put(_WORDS[word])
        elif opening:
            tree.open([] if opening == "[" else {})
        elif closing:
            tree.close()
    return tree.value(text)


class _Tree:
    """The value as far as it was read: finished ones below, those that are still open on a stack of our own."""

    def __init__(self) -> None:
        self._finished: list[Any] = []
        self._open: list[list[Any] | dict[str, Any]] = []
        self._keys: list[str | None] = []

    def put(self, value: Any) -> None:
        parent = self._open[-1] if self._open else self._finished
        if isinstance(parent, list):
            parent.append(value)
        elif (key := self._keys[-1]) is None:
            self._keys[-1] = value
        else:
            parent[key], self._keys[-1] = value, None

    def open(self, value: list[Any] | dict[str, Any]) -> None:
        self.put(value)
        self._open.append(value)
        self._keys.append(None)

    def close(self) -> None:
        if self._open:
            self._open.pop()
            self._keys.pop()

    def value(self, text: str) -> Any:
        if self._open or len(self._finished) != 1:
            raise JSONDecodeError("not one whole value", text, len(text))
        return self._finished[0]
