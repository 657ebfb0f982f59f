"""What ended is written with the next claim, in one round trip; and whatever becomes of that, nothing is lost by it."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from cairnq import CairnQ, DatabaseUnavailable, Registry, TaskContext
from cairnq.pure import pace
from tests.support.gates import Gate, Recorder, soon
from tests.support.rigs import MakeRig, Rig, lose_next_reply, move_to_another_worker
from tests.worker.conftest import MakeWorker

pytestmark = pytest.mark.postgres  # SQLite's driver has no pipeline


class Rounds:
    """A handler whose calls return together, so many at a time."""

    def __init__(self, size: int) -> None:
        self.runs: Counter[str] = Counter()
        self._size = size
        self._inside: list[asyncio.Event] = []

    async def __call__(self, ctx: TaskContext, payload: Any) -> Any:
        self.runs[ctx.task_id] += 1
        mine = asyncio.Event()
        self._inside.append(mine)
        if len(self._inside) == self._size:
            together, self._inside = self._inside, []
            for event in together:
                event.set()
        await mine.wait()
        return payload


class Asked:
    """The statements that a worker sent, and how many rows each concerned."""

    def __init__(self, store: Any) -> None:
        self.settled: list[int] = []
        self.claimed: list[int] = []
        self.exchanged: list[tuple[int, int | None]] = []
        self._settle_many, self._claim_many = store.settle_many, store.claim_many
        self._settle_and_claim = store.settle_and_claim
        store.settle_many, store.claim_many = self._settle, self._claim
        store.settle_and_claim = self._exchange

    async def _settle(self, worker_id: str, settlements: Any) -> Any:
        self.settled.append(len(settlements))
        return await self._settle_many(worker_id, settlements)

    async def _claim(self, *arguments: Any) -> Any:
        found = await self._claim_many(*arguments)
        self.claimed.append(len(found))
        return found

    async def _exchange(self, worker_id: str, settlements: Any, *arguments: Any) -> Any:
        done = await self._settle_and_claim(worker_id, settlements, *arguments)
        self.exchanged.append((len(settlements), None if done is None else len(done[1])))
        return done


async def submit(client: CairnQ, payloads: list[Any], **options: Any) -> list[str]:
    tasks = await client.submit_many([{"name": "x", "payload": payload, **options} for payload in payloads])
    return [task.id for task in tasks]


async def results(client: CairnQ, ids: list[str]) -> list[Any]:
    return [(await soon(client.wait(task_id))).result for task_id in ids]


@pytest.mark.parametrize("forget", [False, True], ids=["kept", "forgotten"])
async def test_a_round_of_calls_costs_one_statement(
    client: CairnQ, make_rig: MakeRig, store: Any, forget: bool
) -> None:
    registry, asked, rounds = Registry(), Asked(store), Rounds(4)
    registry.register("x", rounds, forget=forget, concurrency=4)  # with a quota nothing is claimed ahead
    ids = await submit(client, list(range(16)))
    async with make_rig(registry, concurrency=4):
        if forget:
            async with asyncio.timeout(60):
                while await client.stats():
                    pass
        else:
            assert await results(client, ids) == list(range(16))
    assert asked.exchanged[:3] == [(4, 4)] * 3
    assert [size for size in asked.claimed if size] == [4]
    assert sum(settled for settled, _ in asked.exchanged) + sum(asked.settled) == 16
    assert set(rounds.runs.values()) == {1}


async def test_a_reply_that_is_lost_loses_nothing(
    client: CairnQ, make_worker: MakeWorker, store: Any, events: Recorder
) -> None:
    worker, rounds = make_worker(concurrency=4), Rounds(4)
    worker.register("x", rounds)
    ids = await submit(client, list(range(8)))
    lose_next_reply(store, "settle_and_claim")
    async with worker.background():
        assert await results(client, ids) == list(range(8))
        assert [(await client.get(task_id)).attempt for task_id in ids] == [1] * 8  # type: ignore[union-attr]
    assert set(rounds.runs.values()) == {1}
    assert events.all("lease.lost") == []
    assert len(events.all("database.failed")) == len(events.all("database.recovered")) == 1


async def test_a_reply_that_never_comes_is_given_up(
    client: CairnQ, make_worker: MakeWorker, store: Any, events: Recorder
) -> None:
    worker, rounds, never = make_worker(concurrency=4, lease_ms=1500), Rounds(4), asyncio.Event()
    worker.register("x", rounds)
    original = store.settle_and_claim

    async def endless(*arguments: Any) -> Any:
        store.settle_and_claim = original
        await original(*arguments)
        await never.wait()

    ids = await submit(client, list(range(8)))
    store.settle_and_claim = endless
    async with worker.background():
        assert await results(client, ids) == list(range(8))
    assert set(rounds.runs.values()) == {1}
    assert events.all("lease.lost") == []


async def test_a_database_that_does_not_get_it_loses_nothing(
    client: CairnQ, make_worker: MakeWorker, store: Any, events: Recorder
) -> None:
    worker, rounds = make_worker(concurrency=4), Rounds(4)
    worker.register("x", rounds)
    original = store.settle_and_claim

    async def away(*_arguments: Any) -> Any:
        store.settle_and_claim = original
        raise DatabaseUnavailable("away")

    ids = await submit(client, list(range(8)))
    store.settle_and_claim = away
    async with worker.background():
        assert await results(client, ids) == list(range(8))
    assert set(rounds.runs.values()) == {1}
    assert len(events.all("database.failed")) == 1


@pytest.fixture
def any_number_of_digits() -> Iterator[None]:
    """For what Python writes as text."""
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    yield
    sys.set_int_max_str_digits(limit)


@pytest.mark.usefixtures("any_number_of_digits")
async def test_a_result_that_the_database_refuses_fails_by_itself(
    client: CairnQ, make_worker: MakeWorker, store: Any, events: Recorder
) -> None:
    worker, asked, rounds = make_worker(concurrency=4), Asked(store), Rounds(4)

    @worker.task
    async def x(ctx: TaskContext, payload: int) -> Any:
        await rounds(ctx, payload)
        return 10**140_000 if payload == 1 else payload  # JSON takes it, jsonb's numeric does not

    ids = await submit(client, list(range(8)))
    async with worker.background():
        ended = [await soon(client.wait(task_id)) for task_id in ids]
    assert [task.status for task in ended] == ["succeeded", "failed"] + ["succeeded"] * 6
    assert ended[1].error["code"] == "unserializable_result"
    assert None in [claimed for _, claimed in asked.exchanged]
    assert events.all("database.failed") == []
    assert set(rounds.runs.values()) == {1}


async def test_an_attempt_that_was_lost_is_told_of_once(
    client: CairnQ, make_rig: MakeRig, store: Any, events: Recorder
) -> None:
    registry, gate, asked = Registry(), Gate(), Asked(store)
    registry.register("x", gate)
    async with make_rig(registry, concurrency=2) as rig:
        ids = await submit(client, [0, 1, 2])
        rig.engine.wake()
        for _ in range(2):
            await gate.entered()
        await move_to_another_worker(store, ids[0])
        gate.open()
        assert await results(client, ids[1:]) == [1, 2]
        lost = await events.wait("lease.lost")
    assert asked.exchanged[0] == (2, 1)
    assert lost["task_id"] == ids[0]
    assert len(events.all("lease.lost")) == 1


@pytest.fixture
def long_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """While tasks are held ahead, what has ended waits for the next claim however long that takes."""
    monkeypatch.setattr(pace, "AHEAD_S", 3600.0)
    monkeypatch.setattr(pace, "MOST_AHEAD_S", 3600.0)


@pytest.mark.usefixtures("long_hold")
async def test_while_calls_are_short_what_ended_waits_for_the_next_claim(
    client: CairnQ, make_rig: MakeRig, store: Any
) -> None:
    registry, asked = Registry(), Asked(store)

    @registry.task
    async def x(_ctx: TaskContext, payload: int) -> int:
        return payload

    ids = await submit(client, list(range(1000)))
    async with make_rig(registry, concurrency=4, slots=1000) as rig:
        rig.teach_that_calls_are_short()
        assert await results(client, ids) == list(range(1000))
    assert sum(settled for settled, _ in asked.exchanged) > 500
    assert len(asked.exchanged) < 12, "a statement for each round of slots would make 250"


@pytest.mark.usefixtures("long_hold")
async def test_what_is_waited_for_does_not_wait(client: CairnQ, make_rig: MakeRig, store: Any) -> None:
    registry, gate, asked = Registry(), Gate(), Asked(store)

    @registry.task
    async def x(ctx: TaskContext, payload: int) -> None:
        if payload:
            await ctx.succeed(payload)
            await gate(ctx, payload)

    ids = await submit(client, [0, 0, 1, *([0] * 300)])
    async with make_rig(registry, concurrency=1, slots=1000) as rig:
        rig.teach_that_calls_are_short()
        await gate.entered()
        assert [(await client.get_status(task_id)).status for task_id in ids[:3]] == ["succeeded"] * 3  # type: ignore[union-attr]
        assert asked.settled == [3]
        gate.open()


@pytest.mark.usefixtures("long_hold")
async def test_what_the_next_claim_waits_for_does_not_wait_for_it(client: CairnQ, make_rig: MakeRig) -> None:
    registry = Registry()

    @registry.task
    async def x(_ctx: TaskContext, payload: str) -> str:
        return payload

    ids = await submit(client, ["p" * 100] * 100)
    async with make_rig(registry, concurrency=2, slots=1000, max_in_flight_bytes=10 * 102) as rig:
        rig.teach_that_calls_are_short()
        assert await results(client, ids) == ["p" * 100] * 100


@pytest.mark.usefixtures("long_hold")
async def test_nothing_waits_for_a_claim_that_would_not_take_it_along(client: CairnQ, make_rig: MakeRig) -> None:
    registry, gate = Registry(), Gate()

    @registry.task(concurrency=2)
    async def x(ctx: TaskContext, payload: int) -> int:
        return await gate(ctx, payload) if payload else payload

    registry.register("y", x, concurrency=2)  # two draws in one transaction
    ids = await submit(client, [0, *([1] * 10)])
    await client.submit_many([{"name": "y", "payload": 1}] * 10)
    async with make_rig(registry, concurrency=4, slots=1000) as rig:
        rig.teach_that_calls_are_short()
        assert await results(client, ids[:1]) == [0]
        gate.open()


@pytest.mark.usefixtures("long_hold")
async def test_a_drain_does_not_wait(client: CairnQ, make_rig: MakeRig) -> None:
    registry, gate = Registry(), Gate()

    @registry.task
    async def x(ctx: TaskContext, payload: int) -> None:
        if payload:
            await gate(ctx, payload)

    ids = await submit(client, [0, 0, 1, *([0] * 300)])
    async with make_rig(registry, concurrency=1, slots=1000) as rig:
        rig.teach_that_calls_are_short()
        await gate.entered()
        draining = asyncio.create_task(rig.engine.drain(float("inf")))
        await results(client, ids[:2])
        gate.open()
        assert await soon(draining) == []
    counts = (await client.stats())["default"]
    assert (counts["succeeded"], counts["queued"]) == (3, 300)


async def test_a_bug_in_it_ends_the_run(client: CairnQ, make_rig: MakeRig, store: Any, way: str) -> None:
    if way == "pooled":
        pytest.skip("its end cancels a settlement, and PgBouncer 1.18 may end with a client that cancels and leaves")
    registry, called = Registry(), asyncio.Event()
    registry.register("x", lambda _ctx: None)

    async def buggy(*_arguments: Any) -> Any:
        called.set()
        raise ZeroDivisionError("a bug")

    store.settle_and_claim = buggy
    await client.submit("x")
    with pytest.raises(ZeroDivisionError, match="a bug"):
        await _run_until(called, make_rig(registry, cancel_grace_s=0.001))


async def _run_until(event: asyncio.Event, made: AbstractAsyncContextManager[Rig]) -> None:
    async with made:
        await soon(event.wait())
