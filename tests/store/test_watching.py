"""A watch tells a callback what was queued, what was done, and at every tick that it may look."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cairnq import CairnQ, InvalidArgument, StoreClosed, WatchSignal
from tests.store.conftest import OpenClient
from tests.support.tasks import ME

HOURS = 3_600_000


class Signals:
    """What a watch said, to be awaited."""

    def __init__(self) -> None:
        self._heard: asyncio.Queue[WatchSignal] = asyncio.Queue()
        self.seen: list[WatchSignal] = []

    def __call__(self, signal: WatchSignal) -> None:
        self._heard.put_nowait(signal)

    async def until(self, reason: str, **fields: Any) -> WatchSignal:
        while True:
            signal = await self._heard.get()
            self.seen.append(signal)
            if signal.reason == reason and all(getattr(signal, name) == value for name, value in fields.items()):
                return signal


@pytest.fixture
def signals() -> Signals:
    return Signals()


@pytest.fixture
async def other(open_client: OpenClient) -> CairnQ:
    """Another client, so that what is heard came by way of the database."""
    return await open_client()


async def submit_until_heard(client: CairnQ, signals: Signals, queue: str) -> None:
    """The subscription is made in the background: the first tasks may come before it."""
    heard = asyncio.create_task(signals.until("queued", queue=queue))
    while not heard.done():
        await client.submit("x", queue=queue)
        await asyncio.wait({heard}, timeout=0.1)
    await heard


@pytest.mark.postgres  # a file tells that something has ended, and not what
async def test_it_tells_what_was_queued_and_done(client: CairnQ, other: CairnQ, signals: Signals) -> None:
    stop = await client.watch(signals, poll_ms=HOURS)
    await submit_until_heard(other, signals, "q")
    [task] = await other.store.claim(["q"], ME)
    await other.store.complete(task.id, ME, None)
    await signals.until("done", task_id=task.id, queue=None)
    await stop()


@pytest.mark.postgres  # a file tells that something has ended, and not what
async def test_it_tells_of_its_own_queues_alone_and_of_every_end(
    client: CairnQ, other: CairnQ, signals: Signals
) -> None:
    stop = await client.watch(signals, queues=["mine"], poll_ms=HOURS)
    await submit_until_heard(other, signals, "mine")
    foreign = await other.submit("x", queue="theirs")
    await other.cancel(foreign.id)
    await signals.until("done", task_id=foreign.id)
    assert "theirs" not in {signal.queue for signal in signals.seen}
    await stop()


async def test_it_ticks_whatever_happens(client: CairnQ, signals: Signals) -> None:
    stop = await client.watch(signals, poll_ms=5)
    for _ in range(3):
        await signals.until("poll", queue=None, task_id=None)
    await stop()


async def test_a_watch_that_was_stopped_is_silent(client: CairnQ, other: CairnQ, signals: Signals) -> None:
    stop = await client.watch(signals, poll_ms=1)
    still = Signals()
    await client.watch(still, poll_ms=HOURS)
    await signals.until("poll")
    await stop()
    await stop()
    heard = signals._heard.qsize()
    await submit_until_heard(other, still, "q")
    assert signals._heard.qsize() == heard


async def test_a_client_that_closes_stops_its_watches(open_client: OpenClient, other: CairnQ, signals: Signals) -> None:
    client = await open_client()
    await client.watch(signals, poll_ms=1)
    await client.close()
    heard = signals._heard.qsize()
    still = Signals()
    await other.watch(still, poll_ms=HOURS)
    await submit_until_heard(other, still, "q")
    assert signals._heard.qsize() == heard


async def test_a_callback_that_raises_is_reported_and_called_again(
    client: CairnQ, other: CairnQ, signals: Signals
) -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context))

    def broken(signal: WatchSignal) -> None:
        signals(signal)
        raise RuntimeError("the callback's own")

    stop = await client.watch(broken, poll_ms=5)
    await signals.until("poll")
    await submit_until_heard(other, signals, "q")
    await signals.until("poll")
    await stop()
    assert {str(context["exception"]) for context in reported} == {"the callback's own"}


@pytest.mark.parametrize(
    ("options", "says"),
    [({"poll_ms": 0}, "poll_ms"), ({"queues": "q"}, "queues"), ({"queues": [""]}, "queues")],
)
async def test_a_watch_that_cannot_be_right_is_refused(
    client: CairnQ, signals: Signals, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidArgument, match=says):
        await client.watch(signals, **options)


@pytest.mark.postgres  # a file is watched anew
async def test_one_that_could_not_begin_leaves_nothing_behind(client: CairnQ, signals: Signals) -> None:
    await client.close()
    with pytest.raises(StoreClosed):
        await client.watch(signals, poll_ms=HOURS)
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "cairnq watch"]
