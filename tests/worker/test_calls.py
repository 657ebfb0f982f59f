"""How a handler is called, and what becomes of what it returns or raises."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import deque
from typing import Any

import pytest

from cairnq import CairnQ, Registry, TaskContext, TaskDef, TaskError, TaskFailed, Worker
from cairnq.run.attempt import Attempt
from tests.support.gates import PATIENCE_S, Gate, Recorder, ThreadGate, soon
from tests.support.rigs import MakeRig
from tests.worker.conftest import MakeWorker

ADD = TaskDef[dict[str, int], int]("add")


async def test_a_coroutine_function_gets_context_and_payload(client: CairnQ, make_worker: MakeWorker) -> None:
    worker = make_worker()

    @worker.task(ADD)
    async def add(ctx: TaskContext, payload: dict[str, int]) -> int:
        return payload["a"] + payload["b"]

    async with worker.background():
        assert await client.call(ADD, {"a": 1, "b": 2}) == 3


async def test_a_handler_may_take_the_context_alone(client: CairnQ, make_worker: MakeWorker) -> None:
    worker = make_worker(queues=("q",))

    @worker.task
    async def show(ctx: TaskContext) -> Any:
        return [
            ctx.task_id, ctx.name, ctx.queue, ctx.attempt, ctx.worker_id, ctx.metadata, ctx.root_id,
            ctx.correlation_id, ctx.payload, ctx.settled, ctx.lost_lease, ctx.lease_lost.is_set(),
        ]  # fmt: skip

    async with worker.background():
        task = await client.submit("show", [1], queue="q", metadata={"m": 1}, correlation_id="c")
        ended = await client.wait(task.id)
    assert ended.result == [
        task.id, "show", "q", 1, worker.worker_id, {"m": 1}, task.id, "c", [1], False, False, False,
    ]  # fmt: skip


async def test_a_plain_function_runs_on_a_thread_of_the_pool(client: CairnQ, make_worker: MakeWorker) -> None:
    worker = make_worker(concurrency=2)
    both_inside = threading.Barrier(2, timeout=60)

    @worker.task
    def plain(ctx: Any, payload: Any) -> str:
        both_inside.wait()
        return threading.current_thread().name

    async with worker.background():
        names = await asyncio.gather(client.call("plain"), client.call("plain"))
    assert sorted(names) == ["cairnq-handler-1", "cairnq-handler-2"]


@pytest.mark.parametrize(
    "value", [None, True, 0, -1.5, 2**53, "", "42", "null", "é €", [], [1, [2]], {"a": {"b": None}}]
)
async def test_any_json_value_comes_back_as_it_is(client: CairnQ, make_worker: MakeWorker, value: Any) -> None:
    worker = make_worker()
    worker.register("echo", lambda _ctx, payload: payload)
    async with worker.background():
        task = await client.submit("echo", {"value": value})
        assert (await client.wait(task.id)).result == {"value": value}


async def test_a_handler_that_raises_is_tried_again_until_no_attempt_is_left(
    client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    worker, attempts = make_worker(), []

    @worker.task
    async def boom(ctx: TaskContext) -> None:
        attempts.append(ctx.attempt)
        raise ValueError("no luck")

    async with worker.background():
        with pytest.raises(TaskFailed) as failed:
            await client.call("boom", max_attempts=3)
    assert attempts == [1, 2, 3]
    assert (failed.value.type, failed.value.code, failed.value.message) == ("ValueError", "handler_error", "no luck")
    assert failed.value.retryable
    reported = events.all("task.failed")
    assert [str(event["raised"]) for event in reported] == ["no luck"] * 3


async def test_a_failed_attempt_waits_for_its_backoff(
    client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    worker = make_worker(retry_backoff_ms=3_600_000, retry_backoff_max_ms=7_200_000)

    @worker.task
    async def boom(ctx: TaskContext) -> None:
        raise ValueError

    task = await client.submit("boom")
    async with worker.background():
        await events.wait("task.failed")
    queued = await client.get(task.id)
    assert queued is not None
    assert (queued.status, queued.worker_id, queued.error["code"]) == ("queued", None, "handler_error")
    assert 1_800_000 - 1000 <= queued.run_at_ms - queued.updated_at_ms <= 3_600_000


async def test_a_task_error_chooses_its_envelope_and_is_permanent(client: CairnQ, make_worker: MakeWorker) -> None:
    worker = make_worker()

    @worker.task
    async def refuse(ctx: TaskContext) -> None:
        raise TaskError("no such order", code="not_found", type="OrderError", details={"order": 7})

    async with worker.background():
        with pytest.raises(TaskFailed) as failed:
            await client.call("refuse")
    assert failed.value.error == {
        "type": "OrderError",
        "code": "not_found",
        "message": "no such order",
        "retryable": False,
        "details": {"order": 7},
    }


@pytest.mark.parametrize(
    "result",
    [float("nan"), float("inf"), b"bytes", {1, 2}, object(), "\x00", "\ud800", {"\x00": 1}, {1: 2}],
    ids=["nan", "inf", "bytes", "set", "object", "nul", "surrogate", "nul-key", "int-key"],
)
@pytest.mark.fault(row=26)
async def test_a_result_that_is_not_json_ends_the_task_and_not_the_worker(
    client: CairnQ, make_worker: MakeWorker, result: Any
) -> None:
    worker = make_worker()
    worker.register("odd", lambda _ctx: result)
    worker.register("fine", lambda _ctx: "fine")
    async with worker.background():
        with pytest.raises(TaskFailed) as failed:
            await client.call("odd")
        assert (failed.value.code, failed.value.retryable) == ("unserializable_result", False)
        assert await client.call("fine") == "fine"


class Unshowable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ValueError("a\x00b \ud800"), "handler_error", "a\ufffdb ?"),
        (TaskError("x", details={"when": object}, retryable=True), "task_error", "x"),
        (Unshowable(), "handler_error", "its message cannot be shown: RuntimeError"),
        (SystemExit(3), "handler_error", "the handler raised SystemExit(3)"),
        (KeyboardInterrupt(), "handler_error", "the handler raised KeyboardInterrupt()"),
        (GeneratorExit(), "handler_error", "the handler raised GeneratorExit()"),
        (asyncio.CancelledError("mine"), "handler_error", "mine"),
    ],
    ids=["odd-characters", "odd-details", "unshowable", "system-exit", "ctrl-c", "closed", "cancelled-by-itself"],
)
async def test_whatever_a_handler_raises_becomes_an_envelope(
    client: CairnQ, make_worker: MakeWorker, error: BaseException, code: str, message: str
) -> None:
    worker = make_worker()

    @worker.task
    async def odd(ctx: TaskContext) -> None:
        raise error

    @worker.task
    def odd_on_a_thread(ctx: Any) -> None:
        raise error

    async with worker.background():
        for name in ("odd", "odd_on_a_thread"):
            with pytest.raises(TaskFailed) as failed:
                await client.call(name, max_attempts=1)
            assert (failed.value.type, failed.value.code) == (
                "TaskError" if isinstance(error, TaskError) else type(error).__name__,
                code,
            )
            assert failed.value.message == message


@pytest.mark.fault(row=26)
async def test_a_value_that_only_the_database_refuses_costs_its_own_task_alone(
    client: CairnQ, make_worker: MakeWorker
) -> None:
    worker = make_worker(concurrency=5)
    gate = Gate()

    @worker.task
    async def huge(ctx: TaskContext, payload: Any) -> Any:
        await gate(ctx, payload)
        # jsonb's numeric has no room for it, and JSON has no limit
        return {"n": 10**140_000} if payload == 2 else payload

    tasks = [await client.submit("huge", number) for number in range(5)]
    async with worker.background():
        for _ in tasks:
            await gate.entered()
        gate.open()
        ended = [await client.wait(task.id) for task in tasks]
    assert [task.status for task in ended] == ["succeeded", "succeeded", "failed", "succeeded", "succeeded"]
    assert ended[2].error["code"] == "unserializable_result"


async def test_forget_removes_the_row_of_a_success_and_only_that(client: CairnQ, make_worker: MakeWorker) -> None:
    worker = make_worker()

    @worker.task(forget=True)
    async def ping(ctx: TaskContext, payload: bool) -> None:
        if payload:
            raise TaskError("kept")

    good, bad = await client.submit("ping", False), await client.submit("ping", True)
    keyed = await client.submit("ping", False, key="k")
    async with worker.background():
        assert (await client.wait(bad.id)).failed
        assert (await client.wait(keyed.id)).succeeded, "a key points at it"
    assert await client.get(good.id) is None


async def test_a_name_without_a_handler_is_left_for_others(client: CairnQ, make_worker: MakeWorker) -> None:
    worker = make_worker()
    worker.register("mine", lambda _ctx: None)
    other = await client.submit("other")
    async with worker.background():
        await client.call("mine")
    ref = await client.get_status(other.id)
    assert ref is not None
    assert ref.status == "queued"


async def test_a_handler_may_be_registered_while_the_worker_runs(client: CairnQ, make_worker: MakeWorker) -> None:
    worker = make_worker()
    async with worker.background():
        task = await client.submit("late")
        worker.register("late", lambda _ctx: "here")
        assert (await client.wait(task.id)).result == "here"


async def test_a_task_whose_handler_was_unregistered_meanwhile_fails_by_name(
    client: CairnQ, make_worker: MakeWorker
) -> None:
    worker = make_worker(concurrency=2, max_in_flight_bytes=1)
    gate = Gate()
    worker.register("first", gate)
    worker.register("second", lambda _ctx: None)
    async with worker.background():
        await client.submit("first")
        await gate.entered()
        # The claim that brings `second` is under way with the names of before; the registry changes while it waits.
        original = worker._store.claim_many

        async def claim_many(*arguments: Any) -> Any:
            rows = await original(*arguments)
            if rows and "second" in worker.registry.handlers:
                worker.registry.unregister("second")
            return rows

        worker._store.claim_many = claim_many
        gate.open()
        with pytest.raises(TaskFailed) as failed:
            await client.call("second")
    assert (failed.value.code, failed.value.type, failed.value.retryable) == ("no_handler", "NoHandler", False)


async def test_a_registry_is_shared_and_delegated_to(store: Any, client: CairnQ) -> None:
    registry = Registry(resources={"gpu": 1})

    @registry.task(resource="gpu")
    async def train(ctx: TaskContext) -> str:
        return "trained"

    worker = Worker(store, ["default"], registry=registry)
    worker.task("other")(lambda _ctx: None)
    assert list(registry.handlers) == ["train", "other"]
    async with worker.background():
        assert await client.call("train") == "trained"


async def test_settling_is_batched_and_pick_up_does_not_wait_for_the_poll(
    client: CairnQ, make_worker: MakeWorker
) -> None:
    worker = make_worker(concurrency=50, poll_interval_ms=60_000)
    gate, sizes = Gate(), []
    worker.register("gate", gate)
    original = worker._store.settle_many

    async def settle_many(worker_id: str, settlements: Any) -> Any:
        sizes.append(len(settlements))
        return await original(worker_id, settlements)

    worker._store.settle_many = settle_many
    worker._store.exchanges = False
    async with worker.background():
        tasks = [await client.submit("gate", n) for n in range(50)]
        for _ in tasks:
            await gate.entered()
        gate.open()
        assert [(await soon(client.wait(task.id))).result for task in tasks] == list(range(50))
    assert sum(sizes) == 50
    assert len(sizes) <= 3, f"settlements that end together go together: {sizes}"


async def test_what_ended_waits_for_no_garbage_collector(
    client: CairnQ, make_worker: MakeWorker, events: Recorder
) -> None:
    """Payloads may be large."""
    worker = make_worker(concurrency=4)

    @worker.task
    async def good(ctx: TaskContext, payload: int) -> int:
        return payload

    @worker.task
    async def bad(ctx: TaskContext, payload: int) -> int:
        raise ValueError(payload)

    @worker.task
    def plain(ctx: Any, payload: int) -> int:
        return payload

    ids = set()
    gc.disable()
    try:
        async with worker.background():
            for number in range(5):
                for name in ("good", "bad", "plain"):
                    task = await client.submit(name, number, max_attempts=1)
                    await client.wait(task.id)
                    ids.add(task.id)
            events.events.clear()  # what was raised is in there
            async with asyncio.timeout(PATIENCE_S):
                while any(isinstance(thing, Attempt) and thing.task.id in ids for thing in gc.get_objects()):
                    await client.stats()  # a thread lets go of its call after it has said so
    finally:
        gc.enable()


class _Announcing(deque[Any]):
    """Says of each item that it is in."""

    def __init__(self) -> None:
        super().__init__()
        self.items = threading.Semaphore(0)

    def append(self, item: Any) -> None:
        super().append(item)
        self.items.release()


async def test_what_ends_on_threads_while_the_loop_is_busy_wakes_it_once(client: CairnQ, make_rig: MakeRig) -> None:
    registry, gate, collections = Registry(), ThreadGate(), 0
    registry.register("plain", gate)
    async with make_rig(registry, concurrency=4) as rig:
        on_threads = rig.engine._executor._on_threads
        on_threads._back = back = _Announcing()
        collect = on_threads._collect

        def counting() -> None:
            nonlocal collections
            collections += 1
            collect()

        on_threads._collect = counting  # type: ignore[method-assign]
        tasks = [await client.submit("plain", number) for number in range(4)]
        rig.engine.wake()
        for _ in tasks:
            await gate.entered()
        gate.open()
        for _ in tasks:
            assert back.items.acquire(timeout=PATIENCE_S), "this blocks the loop, and is meant to"
        assert [(await soon(client.wait(task.id))).result for task in tasks] == [0, 1, 2, 3]
    assert collections == 1
