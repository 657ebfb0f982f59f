"""What the clients of a run ask for: drawn from a seed. Knows the handlers of `application` by name alone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

MANY_ATTEMPTS = 1000
"""More than a run can spend: a good task that fails has been wronged."""

KEYS = 40
"""Business names that the clients fight over."""

GOOD = frozenset({"quick", "plain", "batched", "transact", "forgotten", "chain", "slow"})
"""Handlers that never fail by themselves."""

_CONFLICTS = ("reuse", "reuse-succeeded", "reject", "replace")
_WEIGHTS = {
    "quick": 40,
    "plain": 10,
    "batched": 20,
    "transact": 10,
    "forgotten": 10,
    "chain": 5,
    "slow": 6,
    "blocking": 0.4,
    "failing": 8,
    "crashing": 0.25,
    "hanging": 0.3,
}
_QUEUES = {"plain": "plain", "slow": "slow", "blocking": "slow", "crashing": "rough", "hanging": "hang"}
_MOST_FLOODED = 300


@dataclass(frozen=True, slots=True)
class Submit:
    """The arguments of one submit, or of several that are made in one statement."""

    items: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Cancel:
    """One of the latest tasks; `target` in [0, 1) picks it."""

    target: float


@dataclass(frozen=True, slots=True)
class Retry:
    target: float
    reset: bool


Request: TypeAlias = Submit | Cancel | Retry


def requests(seed: int, client: int) -> Iterator[tuple[float, Request]]:
    """For ever: seconds to wait, then what to ask for."""
    choice = random.Random(f"cairnq-torture-{seed}-client-{client}")  # noqa: S311 - to be repeated, not to be secret
    while True:
        pause, draw = choice.uniform(0.0, 0.12), choice.random()
        if draw < 0.04:
            yield pause, Cancel(choice.random())
        elif draw < 0.07:
            yield pause, Retry(choice.random(), reset=choice.random() < 0.5)
        elif draw < 0.12:
            yield pause, Submit(tuple(_item(choice, keyed=0.0) for _ in range(choice.randrange(2, 20))))
        else:
            yield pause, Submit((_item(choice, keyed=0.25),))


def flood(target: float) -> Submit:
    """Many at once; `target` in [0, 1) says how many and which."""
    choice = random.Random(target)  # noqa: S311 - as above
    return Submit(tuple(_item(choice, keyed=0.0) for _ in range(choice.randrange(50, _MOST_FLOODED))))


def _item(choice: random.Random, *, keyed: float) -> dict[str, Any]:
    name = choice.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
    item: dict[str, Any] = {
        "name": name,
        "queue": _QUEUES.get(name, "fast"),
        "payload": _payload(choice, name),
        "max_attempts": MANY_ATTEMPTS if name in GOOD else choice.randrange(1, 5),
        "priority": choice.choice((0, 0, 0, 1, 5)),
        "delay_ms": choice.randrange(3000) if choice.random() < 0.1 else 0,
    }
    if name == "crashing" and choice.random() < 0.5:
        item["queue"] = "plain"  # beside good ones
    if name in GOOD and choice.random() < 0.1:
        item["max_attempts"] = choice.randrange(1, 4)
    if choice.random() < keyed:
        number = choice.randrange(KEYS)
        key, conflict = f"key-{number}", _CONFLICTS[number % len(_CONFLICTS)]
        # The row itself says under which key it was made, for an answer may be lost.
        item |= {"key": key, "conflict": conflict, "metadata": {"key": key, "conflict": conflict}}
    return item


def _payload(choice: random.Random, name: str) -> dict[str, Any]:
    match name:
        case "slow":
            return {"work_ms": choice.choice((500, 1500, 5000))}
        case "blocking":
            return {"work_ms": choice.choice((200, 1000, 6000))}
        case "failing":
            return {"failures": choice.randrange(1, 4), "permanent": choice.random() < 0.2}
        case "crashing":
            return {"deaths": choice.choice((1, 1, 1, 2, 2, 1000))}
        case "hanging":
            return {"deaf": choice.random() < 0.2}
        case _:
            return {"work_ms": choice.choice((0, 0, 1, 5, 20, 100, 300))}
