"""When the keeper looks again, and what it says of what it found."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from cairnq.pure.models import Outlook
from cairnq_supervisor.roles.lookout import AFTER_NEWS, INTERVAL, SOONEST, Lookout, longest_pause, next_look


def outlook(*due: str, next_in_ms: int | None = None) -> Outlook:
    return Outlook(frozenset(due), frozenset(), next_in_ms, None)


@pytest.mark.parametrize(
    ("found", "before", "pause"),
    [
        (outlook(), (), INTERVAL),
        (outlook(next_in_ms=2000), (), 2.0),
        (outlook(next_in_ms=1), (), SOONEST),
        (outlook(next_in_ms=1_000_000), (), INTERVAL),
        (outlook("default"), (), AFTER_NEWS),
        (outlook("default"), ("mail",), AFTER_NEWS),
        (outlook("default", next_in_ms=200), (), 0.2),
        (outlook("default"), ("default",), INTERVAL),
        (outlook("default"), ("default", "mail"), INTERVAL),
    ],
)
def test_the_next_look_is_soon_after_one_that_found_news(found: Outlook, before: tuple[str, ...], pause: float) -> None:
    assert longest_pause(found, frozenset(before)) == pytest.approx(pause)


@pytest.mark.parametrize(
    ("heard_at", "until", "at"),
    [
        (99.0, 103.0, 100 + AFTER_NEWS),
        (100.1, 103.0, 100 + AFTER_NEWS),
        (100.5, 103.0, 100.5 + SOONEST),
        (102.0, 103.0, 102.0 + SOONEST),
        (102.99, 103.0, 103.0),
        (100.1, 100.2, 100.2),
    ],
)
def test_a_look_that_a_notification_calls_for_leaves_the_claim_its_time(
    heard_at: float, until: float, at: float
) -> None:
    assert next_look(until, looked_at=100.0, heard_at=heard_at) == pytest.approx(at)


class Bells:
    """For which queues one was rung, and for which all."""

    def __init__(self) -> None:
        self.one: list[str] = []
        self.all: list[str] = []
        self.rung = asyncio.Event()

    def ring_one(self, queue: str) -> None:
        self.one.append(queue)
        self.rung.set()

    def ring_all(self, queue: str) -> None:
        self.all.append(queue)
        self.rung.set()


def test_a_notification_rings_for_the_queues_of_this_host_alone() -> None:
    bells, queues = Bells(), ["default"]
    parts: list[Any] = [None, None, bells, queues]
    lookout = Lookout(*parts, lease=30.0, may_recover=lambda: True, on_sight=lambda: None)
    lookout.heard("default")
    lookout.heard("another_hosts")
    assert bells.one == ["default"]
    queues.append("another_hosts")
    lookout.heard("another_hosts")
    assert bells.one[1:] == ["another_hosts"], "a reload may add queues"
    assert bells.all == []


class Database:
    """What the keeper asks it for: whether each look is also one for expired leases."""

    def __init__(self) -> None:
        self.looks: asyncio.Queue[bool] = asyncio.Queue()
        self.due: tuple[str, ...] = ()

    async def ask(self, operation: str, work: Callable[[Database], Awaitable[Outlook]], *, patience: float) -> Outlook:
        assert operation == "look"
        return await work(self)

    async def outlook(self, queues: Sequence[str], bound: int, *, expired: bool) -> Outlook:
        self.looks.put_nowait(expired)
        return outlook(*self.due)


async def test_a_reload_to_a_shorter_lease_has_expired_ones_looked_for_by_it_and_soon() -> None:
    database, hour = Database(), 3600.0
    now = 1000.0
    parts: list[Any] = [database, None, Bells(), ["default"]]
    lookout = Lookout(*parts, lease=hour, may_recover=lambda: True, on_sight=lambda: None, clock=lambda: now)
    looking = asyncio.ensure_future(lookout.run())
    assert await database.looks.get() is False
    now += AFTER_NEWS
    lookout.adapt(0.9)
    now += 0.3
    assert await database.looks.get() is True
    looking.cancel()


async def test_of_what_is_due_one_is_told_and_of_what_still_is_all() -> None:
    database, bells = Database(), Bells()
    parts: list[Any] = [database, None, bells, ["default", "mail"]]
    now = 1000.0
    lookout = Lookout(*parts, lease=30.0, may_recover=lambda: True, on_sight=lambda: None, clock=lambda: now)
    database.due = ("default",)
    looking = asyncio.ensure_future(lookout.run())
    await bells.rung.wait()
    assert (bells.one, bells.all) == (["default"], [])
    bells.rung.clear()
    database.due = ("default", "mail")
    now += INTERVAL
    lookout.adapt(30.0)  # it looks at once
    await bells.rung.wait()
    assert (bells.one, bells.all) == (["default", "mail"], ["default"])
    looking.cancel()
