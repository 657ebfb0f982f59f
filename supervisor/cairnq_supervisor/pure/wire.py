"""The form of messages between processes.

A message is a JSON object, cut into packets below 64 KiB, because a SEQPACKET socket refuses long ones. Each packet
starts with the version of the vocabulary and a flag that says whether more of the same message follows.
"""

from __future__ import annotations

import json
from dataclasses import fields
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from cairnq_supervisor.pure import keeper_messages, messages
from cairnq_supervisor.pure.messages import Message

VERSION = 1
MAX_PACKET = 60_000
"""Bytes. A Unix socket's send buffer (212,992 bytes by default) holds three of them."""

MAX_MESSAGE = 8 << 20
"""Bytes. Whoever sends more than this in one message is broken."""

_PREFIX = bytes((0xC4, VERSION))
_MORE, _LAST = b"+", b"."
_OVERHEAD = len(_PREFIX) + 1

KINDS: dict[str, type[Message]] = {
    name: kind
    for room in (messages, keeper_messages)
    for name, kind in vars(room).items()
    if isinstance(kind, type) and issubclass(kind, Message) and kind is not Message
}
"""The whole vocabulary. (Not `__subclasses__()`: a class with slots is made twice.)"""

_HINTS = {name: {f.name: get_type_hints(kind)[f.name] for f in fields(kind)} for name, kind in KINDS.items()}


class BadMessage(ValueError):
    """What came over a channel is not one of our messages."""


def encode(message: Message) -> list[bytes]:
    """The packets of one message, in order. Values of an event that JSON cannot hold are written as their text."""
    # Not `asdict`, which copies every value to its depth: twenty times the cost of writing it.
    document = {"kind": type(message).__name__, **{f.name: getattr(message, f.name) for f in fields(message)}}
    body = json.dumps(document, separators=(",", ":"), default=str).encode()
    step = MAX_PACKET - _OVERHEAD
    pieces = [body[start : start + step] for start in range(0, len(body), step)]
    flags = [_MORE] * (len(pieces) - 1) + [_LAST]
    return [_PREFIX + flag + piece for flag, piece in zip(flags, pieces, strict=True)]


class Assembler:
    """Puts the packets of one channel together again."""

    def __init__(self) -> None:
        self._body = bytearray()

    def feed(self, packet: bytes) -> Message | None:
        """The message that this packet completes, if it does. Raises `BadMessage`."""
        if not packet.startswith(_PREFIX):
            raise BadMessage(f"a packet that starts with {packet[:3]!r}, not with version {VERSION} of our vocabulary")
        flag, piece = packet[len(_PREFIX) : _OVERHEAD], packet[_OVERHEAD:]
        if flag not in (_MORE, _LAST):
            raise BadMessage(f"a packet with the flag {flag!r}")
        self._body += piece
        if len(self._body) > MAX_MESSAGE:
            raise BadMessage(f"a message of more than {MAX_MESSAGE} bytes")
        if flag == _MORE:
            return None
        body, self._body = bytes(self._body), bytearray()
        return decode(body)


def decode(body: bytes) -> Message:
    """The message of a whole body. Raises `BadMessage` for an unknown kind, a wrong field or a wrong type."""
    try:
        document = json.loads(body)
    except ValueError as error:
        raise BadMessage(f"not JSON: {error}") from error
    kind = document.pop("kind", None) if isinstance(document, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise BadMessage(f"a message of kind {kind!r}")
    hints = _HINTS[kind]
    if document.keys() != hints.keys():
        raise BadMessage(f"{kind} has the fields {sorted(hints)}, not {sorted(document)}")
    return KINDS[kind](**{name: _typed(kind, name, document[name], hint) for name, hint in hints.items()})


def _typed(kind: str, name: str, value: Any, hint: Any) -> Any:
    if get_origin(hint) is tuple:
        if isinstance(value, list) and all(isinstance(item, get_args(hint)[0]) for item in value):
            return tuple(value)
    elif hint is float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    elif isinstance(value, _class_of(hint)) and (hint is bool or not isinstance(value, bool)):
        return value
    raise BadMessage(f"{kind}.{name} is {value!r}")


def _class_of(hint: Any) -> Any:
    """What `isinstance` takes: `dict[str, Any]` is a dict, `str | None` is itself."""
    return hint if isinstance(hint, UnionType) else get_origin(hint) or hint
