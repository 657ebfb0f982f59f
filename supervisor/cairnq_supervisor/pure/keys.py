"""The keys of the configuration: which there are, in which scope, and what a right value is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from cairnq_supervisor.pure import quantities

AUTO = "auto"
FINISHED = frozenset({"succeeded", "failed", "canceled"})
_APP = re.compile(r"[A-Za-z_][\w]*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.%\w]+)\]|([^\s:\[\]]+)):(\d{1,5})", re.ASCII)
_TRUTH = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}

Parse = Callable[[Any], Any]
"""Turns a raw value into the typed one, or raises `ValueError` whose text says what would be right."""


class Scope(Enum):
    TOP = auto()
    QUEUE = auto()
    BOTH = auto()  # a queue's own value, else the top one
    EACH = auto()  # in a queue the queue's, at the top the host's; both hold


@dataclass(frozen=True, slots=True)
class Key:
    scope: Scope
    parse: Parse


def text(value: Any) -> str:
    if isinstance(value, str) and value.strip() and "\0" not in value:
        return value
    raise ValueError("a text that is not empty")


def app(value: Any) -> str:
    if isinstance(value, str) and _APP.fullmatch(value):
        return value
    raise ValueError('"module:attribute", such as "shop.tasks:registry"')


def truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError("true or false")


def count(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise ValueError("a whole number, 1 or more")


def from_text(name: str, value: str) -> Any:
    """A value of the environment, which holds nothing but text, as the file would have it. What is wrong stays."""
    parse = KEYS[name].parse
    if parse is count and value.isascii() and value.isdigit():
        return int(value)
    return _TRUTH.get(value.lower(), value) if parse is truth else value


@dataclass(frozen=True, slots=True)
class Range:
    """As many worker processes as there is work for, between these."""

    low: int
    high: int


MAX_PROCESSES = 256
"""Worker processes of one queue on one host. Each takes a connection and some 15 MB: more is a slip of the keyboard,
and forking thousands would take the host down before anybody could say so."""


def processes(value: Any) -> int | str | Range:
    try:
        if isinstance(value, dict) and value.keys() == {"min", "max"}:
            low, high = _few(value["min"]), _few(value["max"])
            if low <= high:
                return Range(low, high)
        return AUTO if value == AUTO else _few(value)
    except ValueError:
        choices = '"auto" (the cores that this host grants), or a range such as {min = 1, max = 8}'
        raise ValueError(f"a whole number from 1 to {MAX_PROCESSES}, {choices}") from None


def _few(value: Any) -> int:
    number = count(value)
    if number > MAX_PROCESSES:
        raise ValueError
    return number


def duration(value: Any) -> float:
    """Seconds, zero included."""
    if isinstance(value, str):
        return quantities.duration(value)
    raise ValueError(quantities.DURATION_EXAMPLE)


def positive_duration(value: Any) -> float:
    seconds = duration(value)
    if seconds <= 0:
        raise ValueError("longer than zero, and " + quantities.DURATION_EXAMPLE)
    return seconds


def lease(value: Any) -> float:
    """Seconds. The trust window keeps 250 ms of margin and needs room for three beats."""
    seconds = positive_duration(value)
    if not 1.0 <= seconds <= 86400.0:
        raise ValueError('between "1s" and "1d"')
    return seconds


def names(value: Any) -> tuple[str, ...]:
    if isinstance(value, list) and value and all(isinstance(item, str) and item for item in value):
        return tuple(value)
    raise ValueError('a list of handler names, such as ["send_mail", "resize"]')


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. `host` is an IP address or a name; an IPv6 one without its brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address(value: Any) -> Address:
    if isinstance(value, str) and (match := _ADDRESS.fullmatch(value)) and int(match[3]) <= 65_535:
        return Address(match[1] or match[2], int(match[3]))
    raise ValueError('host and port, such as "127.0.0.1:9464", "[::1]:9464", or "0.0.0.0:9464" for every interface')


def one_of(*choices: str) -> Parse:
    def parse(value: Any) -> str:
        if isinstance(value, str) and value in choices:
            return value
        raise ValueError(" or ".join(f'"{choice}"' for choice in choices))

    return parse


def amounts(value: Any) -> Mapping[str, int]:
    try:
        return {str(name): count(amount) for name, amount in value.items()}
    except (AttributeError, ValueError):
        raise ValueError("a table of resource names and whole numbers, 1 or more, such as gpu = 1") from None


def ages(value: Any) -> Mapping[str, float]:
    """Seconds by finished status."""
    example = 'a table of finished statuses and ages, such as succeeded = "1d", failed = "30d", canceled = "7d"'
    if not isinstance(value, dict) or not value.keys() <= FINISHED:
        raise ValueError(example)
    try:
        return {status: duration(age) for status, age in value.items()}
    except ValueError:
        raise ValueError(example) from None


def size(value: Any) -> int:
    """Bytes, more than none."""
    if isinstance(value, str) and (count := quantities.size(value)) > 0:
        return count
    raise ValueError(quantities.SIZE_EXAMPLE)


KEYS: Mapping[str, Key] = {
    "app": Key(Scope.TOP, app),
    "database": Key(Scope.TOP, text),
    "dsn_file": Key(Scope.TOP, text),
    "listen_database": Key(Scope.TOP, text),
    "schema": Key(Scope.TOP, text),
    "migrate": Key(Scope.TOP, truth),
    "preload": Key(Scope.TOP, truth),
    "drain_timeout": Key(Scope.TOP, duration),
    "boot_timeout": Key(Scope.TOP, positive_duration),
    "connect_timeout": Key(Scope.TOP, positive_duration),
    "http": Key(Scope.TOP, address),
    "log": Key(Scope.TOP, one_of("text", "json")),
    "resources": Key(Scope.TOP, amounts),
    "retention": Key(Scope.TOP, ages),
    "processes": Key(Scope.QUEUE, processes),
    "concurrency": Key(Scope.QUEUE, count),
    "handlers": Key(Scope.QUEUE, names),
    "lease": Key(Scope.BOTH, lease),
    "poll": Key(Scope.BOTH, positive_duration),
    "max_run": Key(Scope.BOTH, positive_duration),
    "stall_timeout": Key(Scope.BOTH, positive_duration),
    "max_tasks": Key(Scope.BOTH, count),
    "max_age": Key(Scope.BOTH, positive_duration),
    "max_rss": Key(Scope.BOTH, size),
    "max_in_flight_bytes": Key(Scope.EACH, size),
    "retry_backoff": Key(Scope.BOTH, duration),
    "retry_backoff_max": Key(Scope.BOTH, duration),
}

TOP_KEYS = frozenset(name for name, key in KEYS.items() if key.scope is not Scope.QUEUE)
QUEUE_KEYS = frozenset(name for name, key in KEYS.items() if key.scope is not Scope.TOP)
TABLES = frozenset({"queues", "resources", "retention"})
"""Top-level tables: they come from the file alone."""
