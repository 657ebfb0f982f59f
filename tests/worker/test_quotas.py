"""Batches, ceilings and budgets: how many calls run, and who is claimed first."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from cairnq import CairnQ, InvalidArgument, TaskContext, TaskError, Worker
from tests.support.gates import Gate, ThreadGate
from tests.worker.conftest import MakeWorker


async def submit(client: CairnQ, name: str, count: int, **options: Any) -> list[str]:
    tasks = await client.submit_many([{"name": name, "payload": number, **options} for number in range(count)])
    return [task.id for task in tasks]


async def ended(client: CairnQ, task_ids: list[str]) -> list[Any]:
    return [await client.wait(task_id) for task_id in task_ids]


async def test_a_batch_takes_what_is_there_and_is_never_padded(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, sizes = make_worker(concurrency=1), []

    @worker.task(batch=5)
    async def many(contexts: list[TaskContext]) -> dict[str, int]:
        sizes.append(len(contexts))
        return {ctx.task_id: ctx.payload * 10 for ctx in contexts}

    ids = await submit(client, "many", 12)
    async with worker.background():
        assert [task.result for task in await ended(client, ids)] == [number * 10 for number in range(12)]
    assert sizes == [5, 5, 2]


async def test_concurrency_counts_calls_and_not_tasks(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, gate = make_worker(concurrency=2), Gate()
    worker.register("many", gate.batch, batch=4)
    ids = await submit(client, "many", 20)
    async with worker.background():
        assert [len(await gate.entered()) for _ in range(2)] == [4, 4]
        assert (await client.stats())["default"]["queued"] == 12, "what does not fit stays queued"
        gate.open()
        assert all(task.succeeded for task in await ended(client, ids))
    assert gate.most_inside == 2


async def test_a_batch_on_a_thread_gets_blocking_contexts(client: CairnQ, make_worker: MakeWorker) -> None:
    worker = make_worker()

    @worker.task(batch=3)
    def many(contexts: list[Any]) -> None:
        for ctx in contexts:
            ctx.succeed(ctx.payload + 1)

    ids = await submit(client, "many", 3)
    async with worker.background():
        assert [task.result for task in await ended(client, ids)] == [1, 2, 3]


async def test_a_batch_settles_each_task_by_how_the_call_ended_unless_it_did_itself(
    client: CairnQ, make_worker: MakeWorker
) -> None:
    worker, calls = make_worker(), Counter()

    @worker.task(batch=3)
    async def many(contexts: list[TaskContext]) -> None:
        for ctx in contexts:
            calls[ctx.payload] += 1
        if len(contexts) == 3:
            await contexts[0].succeed("by itself")
            await contexts[1].fail("not this one", retryable=False)
            assert await contexts[0].fail("too late") is None, "settling twice has no effect"
            raise RuntimeError("half way")

    ids = await submit(client, "many", 3)
    async with worker.background():
        first, second, third = await ended(client, ids)
    assert (first.status, first.result, first.error) == ("succeeded", "by itself", None)
    assert (second.status, second.error["message"], second.error["retryable"]) == ("failed", "not this one", False)
    assert (third.status, third.result, third.attempt) == ("succeeded", None, 2)
    assert calls == {0: 1, 1: 1, 2: 2}


async def test_a_permanent_error_of_a_batch_fails_each_for_good(client: CairnQ, make_worker: MakeWorker) -> None:
    worker = make_worker()

    @worker.task(batch=2)
    async def many(contexts: list[TaskContext]) -> None:
        raise TaskError("never", code="no")

    ids = await submit(client, "many", 2)
    async with worker.background():
        tasks = await ended(client, ids)
    assert [(task.status, task.attempt, task.error["code"]) for task in tasks] == [("failed", 1, "no")] * 2


async def test_a_result_of_a_batch_that_is_not_json_costs_its_own_task_alone(
    client: CairnQ, make_worker: MakeWorker
) -> None:
    worker = make_worker()

    @worker.task(batch=2)
    async def many(contexts: list[TaskContext]) -> dict[str, Any]:
        return {ctx.task_id: b"bytes" if ctx.payload else "text" for ctx in contexts}

    ids = await submit(client, "many", 2)
    async with worker.background():
        good, bad = await ended(client, ids)
    assert (good.status, good.result) == ("succeeded", "text")
    assert (bad.status, bad.error["code"]) == ("failed", "unserializable_result")


async def test_a_name_with_a_concurrency_of_its_own_leaves_room_for_others(
    client: CairnQ, make_worker: MakeWorker
) -> None:
    worker, narrow, wide = make_worker(concurrency=5), Gate(), Gate()
    worker.register("narrow", narrow, concurrency=2)
    worker.register("wide", wide)
    ids = await submit(client, "narrow", 6, priority=9) + await submit(client, "wide", 6)
    async with worker.background():
        for _ in range(2):
            await narrow.entered()
        for _ in range(3):
            await wide.entered()
        narrow.open()
        wide.open()
        assert all(task.succeeded for task in await ended(client, ids))
    assert narrow.most_inside == 2
    assert wide.most_inside <= 5


async def test_a_resource_is_a_ceiling_that_names_share_and_the_gate_is_at_the_claim(
    client: CairnQ, make_worker: MakeWorker
) -> None:
    worker, gate, free = make_worker(concurrency=4, resources={"gpu": 1}), Gate(), Gate()
    worker.register("train", gate, resource="gpu")
    worker.register("infer", gate, resource="gpu")
    worker.register("free", free)
    ids = await submit(client, "train", 2) + await submit(client, "infer", 2) + await submit(client, "free", 1)
    async with worker.background():
        await gate.entered()
        await free.entered()
        counts = (await client.stats())["default"]
        assert (counts["running"], counts["queued"]) == (2, 3), "work that waits for a resource stays queued"
        gate.open()
        free.open()
        assert all(task.succeeded for task in await ended(client, ids))
    assert gate.most_inside == 1


async def test_no_name_starves_beside_one_with_an_endless_backlog(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, order = make_worker(concurrency=1), []

    async def note(ctx: TaskContext) -> None:
        order.append(ctx.name)

    worker.register("greedy", note, concurrency=1)
    worker.register("modest", note, concurrency=1)
    worker.register("common", note)
    ids = [
        *await submit(client, "greedy", 30, priority=5),
        *await submit(client, "modest", 3),
        *await submit(client, "common", 3),
    ]
    async with worker.background():
        assert all(task.succeeded for task in await ended(client, ids))
    assert {"modest", "common"} <= set(order[:4]), f"each name came first in its turn: {order}"


async def test_names_without_quotas_are_claimed_in_one_statement_and_others_in_one_transaction(
    client: CairnQ, make_worker: MakeWorker
) -> None:
    worker, claims, draws = make_worker(concurrency=3), Counter(), []
    store: Any = worker._store
    many, drawn = store.claim_many, store.claim_drawn

    async def claim_many(*arguments: Any) -> Any:
        claims["many"] += 1
        return await many(*arguments)

    async def claim_drawn(queues: Any, worker_id: str, lease_ms: int, names: Any, plan: Any) -> Any:
        async def spied(draw: Any) -> Any:
            async def draw_and_note(names: Any, limit: int) -> Any:
                draws.append((tuple(names), limit))
                return await draw(names, limit)

            return await plan(draw_and_note)

        claims["drawn"] += 1
        return await drawn(queues, worker_id, lease_ms, names, spied)

    store.claim_many, store.claim_drawn = claim_many, claim_drawn
    worker.register("a", lambda _ctx: None)
    worker.register("b", lambda _ctx: None)
    async with worker.background():
        await client.call("a")
        assert (claims["drawn"], claims["many"] > 0) == (0, True)
        worker.register("c", lambda _contexts: None, batch=5)
        await client.call("c")
    assert claims["drawn"] > 0
    assert {names for names, _ in draws} >= {("c",)}
    assert dict(draws)["c",] == 15, "three free calls of five tasks each"


async def test_payload_bytes_in_flight_stay_under_the_ceiling(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, gate = make_worker(concurrency=10, max_in_flight_bytes=2500), Gate()
    worker.register("heavy", gate)
    ids = [(await client.submit("heavy", "x" * 1000)).id for _ in range(6)]
    async with worker.background():
        for _ in range(2):
            await gate.entered()
        await client.submit("heavy", "x" * 1000)  # one more wake that changes nothing
        assert gate.none_entered
        gate.open()
        assert all(task.succeeded for task in await ended(client, ids))
    assert gate.most_inside <= 2


async def test_a_payload_beyond_the_whole_budget_runs_alone(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, inside, beside = make_worker(concurrency=4, max_in_flight_bytes=2000), Counter(), {}

    async def note(ctx: TaskContext, payload: str) -> int:
        inside[ctx.name] += 1
        beside[ctx.task_id] = sum(inside.values())
        await ctx.progress(0.5)
        inside[ctx.name] -= 1
        return len(payload)

    worker.register("note", note)
    before = [(await client.submit("note", "x" * 100)).id for _ in range(8)]
    giant = (await client.submit("note", "x" * 50_000)).id
    after = [(await client.submit("note", "x" * 100)).id for _ in range(8)]
    async with worker.background():
        tasks = await ended(client, [*before, giant, *after])
    assert [task.result for task in tasks] == [100] * 8 + [50_000] + [100] * 8
    assert beside[giant] == 1
    assert all(task.attempt == 1 for task in tasks)


async def test_a_claim_takes_no_more_than_claim_batch(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, gate, limits = make_worker(concurrency=10, claim_batch=3), Gate(), []
    store: Any = worker._store
    original = store.claim_many

    async def claim_many(queues: Any, worker_id: str, lease_ms: int, limit: int, names: Any) -> Any:
        limits.append(limit)
        return await original(queues, worker_id, lease_ms, limit, names)

    store.claim_many = claim_many
    worker.register("gate", gate)
    ids = await submit(client, "gate", 10)
    async with worker.background():
        for _ in ids:
            await gate.entered()
        gate.open()
        assert all(task.succeeded for task in await ended(client, ids))
    assert limits[:4] == [3, 3, 3, 1]


async def test_higher_priority_runs_first_and_then_the_older(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, order = make_worker(), []

    @worker.task
    async def note(ctx: TaskContext, payload: str) -> None:
        order.append(payload)

    for payload, priority in (("a", 0), ("b", 5), ("c", 0), ("d", -1), ("e", 5)):
        await client.submit("note", payload, priority=priority)
    last = await client.submit("note", "last", priority=-9)
    async with worker.background():
        await client.wait(last.id)
    assert order == ["b", "e", "a", "c", "d", "last"]


async def test_a_worker_takes_from_its_own_queues_alone(client: CairnQ, make_worker: MakeWorker) -> None:
    worker = make_worker(queues=("one", "two"))
    worker.register("x", lambda ctx: ctx.queue)
    mine = [(await client.submit("x", queue=queue)).id for queue in ("one", "two")]
    foreign = await client.submit("x", queue="three")
    async with worker.background():
        assert [task.result for task in await ended(client, mine)] == ["one", "two"]
    ref = await client.get_status(foreign.id)
    assert ref is not None
    assert ref.status == "queued"


async def test_threads_count_against_concurrency_until_they_return(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, gate = make_worker(concurrency=2), ThreadGate()
    worker.register("blocked", gate)
    ids = await submit(client, "blocked", 3)
    async with worker.background():
        await asyncio.gather(gate.entered(), gate.entered())
        counts = (await client.stats())["default"]
        assert (counts["running"], counts["queued"]) == (2, 1)
        gate.open()
        assert all(task.succeeded for task in await ended(client, ids))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 0}, "concurrency must be an integer of at least 1, not 0"),
        ({"concurrency": "4"}, "not '4'"),
        ({"claim_batch": 0}, "claim_batch"),
        ({"lease_ms": 100}, "lease_ms must be from 500"),
        ({"lease_ms": 30.5}, "lease_ms must be an integer"),
        ({"heartbeat_interval_ms": 20_000}, "heartbeat_interval_ms must be from 1 to 15000"),
        ({"poll_interval_ms": 0}, "poll_interval_ms"),
        ({"max_run_ms": 0}, "max_run_ms"),
        ({"max_in_flight_bytes": 0}, "max_in_flight_bytes"),
        ({"retry_backoff_ms": -1}, "retry_backoff_ms"),
        ({"resources": {"gpu": 0}}, "'gpu' must be"),
        ({"max_queue_depth": 0}, "max_queue_depth"),
        ({"queues": ()}, "at least one queue"),
        ({"queues": "default"}, "queues must be a list"),
        ({"queues": ("",)}, "must not be empty"),
    ],
)
def test_an_option_that_cannot_be_right_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        Worker.postgres("postgresql://nobody@127.0.0.1:1/none", **options)
