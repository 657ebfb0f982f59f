"""When the keeper looks again, and what it says of what it found."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from cairnq.pure.models import Outlook
from cairnq_supervisor.pure.keeper_messages import Queued
from cairnq_supervisor.pure.messages import Message
from cairnq_supervisor.roles.lookout import AFTER_NEWS, INTERVAL, SOONEST, Lookout, longest_pause


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


class Link:
    """What is said to the supervisor."""

    def __init__(self) -> None:
        self.said: list[Message] = []

    def send(self, message: Message) -> None:
        self.said.append(message)


def test_a_notification_is_passed_on_for_the_queues_of_this_host_alone() -> None:
    link, queues = Link(), ["default"]
    parts: list[Any] = [None, link, queues]
    lookout = Lookout(*parts, lease=30.0, may_recover=lambda: True, on_sight=lambda: None)
    lookout.heard("default")
    lookout.heard("another_hosts")
    assert link.said == [Queued("default")]
    queues.append("another_hosts")
    lookout.heard("another_hosts")
    assert link.said[1:] == [Queued("another_hosts")], "a reload may add queues"


class Database:
    """What the keeper asks it for: whether each look is also one for expired leases."""

    def __init__(self) -> None:
        self.looks: asyncio.Queue[bool] = asyncio.Queue()

    async def ask(self, operation: str, work: Callable[[Database], Awaitable[Outlook]], *, patience: float) -> Outlook:
        assert operation == "look"
        return await work(self)

    async def outlook(self, queues: Sequence[str], bound: int, *, expired: bool) -> Outlook:
        self.looks.put_nowait(expired)
        return outlook()


async def test_a_reload_to_a_shorter_lease_has_expired_ones_looked_for_by_it_and_soon() -> None:
    database, hour = Database(), 3600.0
    now = 1000.0
    parts: list[Any] = [database, Link(), ["default"]]
    lookout = Lookout(*parts, lease=hour, may_recover=lambda: True, on_sight=lambda: None, clock=lambda: now)
    looking = asyncio.ensure_future(lookout.run())
    assert await database.looks.get() is False
    now += AFTER_NEWS
    lookout.adapt(0.9)
    now += 0.3
    assert await database.looks.get() is True
    looking.cancel()
