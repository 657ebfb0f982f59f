"""What a handler may do through its context, on the loop and on a thread."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cairnq import CairnQ, LostLease, QueueFull, SerializationError, TaskContext, TaskFailed
from tests.support.gates import Gate, ThreadGate
from tests.support.rigs import move_to_another_worker
from tests.worker.conftest import MakeWorker


async def test_progress_is_stored_and_null_leaves_it(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, gate = make_worker(), Gate()

    @worker.task
    async def steps(ctx: TaskContext, payload: Any) -> None:
        await ctx.progress(0.25, "a quarter")
        await ctx.progress(None, "more")
        await ctx.progress(0.75)
        await gate(ctx, payload)

    async with worker.background():
        task = await client.submit("steps")
        await gate.entered()
        running = await client.get(task.id)
        assert running is not None
        assert (running.progress, running.message) == (0.75, "more")
        gate.open()
        assert (await client.wait(task.id)).progress == 1.0


async def test_a_child_descends_from_its_task(client: CairnQ, make_worker: MakeWorker) -> None:
    worker = make_worker(concurrency=2)

    @worker.task
    async def parent(ctx: TaskContext) -> list[str]:
        child = await ctx.submit("child", {"depth": 1}, priority=3, delay_ms=0)
        ended = await ctx.wait(child.id)
        return [child.id, ended.result]

    @worker.task
    def child(ctx: Any, payload: Any) -> str:
        grandchild = ctx.submit("leaf", correlation_id="own", queue="elsewhere")
        return grandchild.id

    async with worker.background():
        task = await client.submit("parent", correlation_id="order-7")
        child_id, leaf_id = (await client.wait(task.id)).result
    child_task, leaf = await client.get(child_id), await client.get(leaf_id)
    assert child_task is not None
    assert leaf is not None
    assert (child_task.parent_id, child_task.root_id, child_task.correlation_id) == (task.id, task.id, "order-7")
    assert (child_task.payload, child_task.priority) == ({"depth": 1}, 3)
    assert (leaf.parent_id, leaf.root_id, leaf.correlation_id, leaf.queue) == (child_id, task.id, "own", "elsewhere")


async def test_a_context_waits_at_the_depth_limit_as_a_client_does(client: CairnQ, make_worker: MakeWorker) -> None:
    worker = make_worker(max_queue_depth={"full": 1}, max_queue_wait_ms=100, queue_poll_interval_ms=10)

    @worker.task
    async def fill(ctx: TaskContext) -> str:
        await ctx.submit("x", queue="full")
        try:
            await ctx.submit("x", queue="full")
        except QueueFull as full:
            return full.queue
        return "not full"

    async with worker.background():
        assert await client.call("fill") == "full"


async def test_a_heartbeat_renews_the_lease(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, seen = make_worker(lease_ms=60_000), []

    @worker.task
    async def beat(ctx: TaskContext) -> None:
        before = await ctx.progress(0.1)
        after = await ctx.heartbeat()
        seen.append((before.lease_until_ms, after.lease_until_ms))

    async with worker.background():
        await client.call("beat")
    [(before, after)] = seen
    assert after > before


async def test_succeed_settles_at_once_and_the_handler_goes_on(client: CairnQ, make_worker: MakeWorker) -> None:
    worker, gate, answers = make_worker(), Gate(), []

    @worker.task
    async def early(ctx: TaskContext, payload: Any) -> str:
        settled = await ctx.succeed({"early": True})
        assert settled is not None
        answers.append((settled.status, settled.result, ctx.settled, await ctx.succeed("again"), await ctx.fail("x")))
        with pytest.raises(LostLease):
            await ctx.progress(0.5)
        await gate(ctx, payload)
        return "ignored"

    async with worker.background():
        task = await client.submit("early")
        await gate.entered()
        assert (await client.wait(task.id)).result == {"early": True}
        gate.open()
    assert answers == [("succeeded", {"early": True}, True, None, None)]
    assert (await client.get(task.id)).result == {"early": True}  # type: ignore[union-attr]


async def test_what_a_handler_left_behind_writes_nothing_after_the_call(
    client: CairnQ, make_worker: MakeWorker
) -> None:
    worker, left = make_worker(), []
    worker.register("leaves", lambda ctx: left.append(ctx._context))
    async with worker.background():
        await client.call("leaves")
        [ctx] = left
        for write in (ctx.submit("leaves"), ctx.progress(0.5), ctx.heartbeat()):
            with pytest.raises(LostLease):
                await write
        assert await ctx.succeed("again") is None
    assert (await client.stats())["default"]["succeeded"] == 1


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("words", {"type": "TaskError", "code": "task_error", "message": "words", "details": None}),
        (KeyError("k"), {"type": "KeyError", "code": "handler_error", "message": "'k'", "details": None}),
        (
            {"code": "mine", "message": "m", "details": [1], "retryable": True},
            {"type": "TaskError", "code": "mine", "message": "m", "details": [1]},
        ),
        ({"other": 1}, {"type": "TaskError", "code": "task_error", "message": "task failed", "details": {"other": 1}}),
    ],
)
async def test_fail_takes_words_an_exception_or_an_envelope(
    client: CairnQ, make_worker: MakeWorker, error: Any, expected: dict[str, Any]
) -> None:
    worker = make_worker()

    @worker.task
    async def fail(ctx: TaskContext) -> None:
        await ctx.fail(error, retryable=False)

    async with worker.background():
        with pytest.raises(TaskFailed) as failed:
            await client.call("fail")
    assert failed.value.error == {**expected, "retryable": False}


async def test_fail_retryably_queues_the_task_again(client: CairnQ, make_worker: MakeWorker) -> None:
    worker = make_worker()

    @worker.task
    async def second_time(ctx: TaskContext) -> str:
        if ctx.attempt == 1:
            task = await ctx.fail("not yet")
            assert task is not None
            assert task.status in {"queued", "running", "succeeded"}, "somebody may have it already"
        return f"attempt {ctx.attempt}"

    async with worker.background():
        assert await client.call("second_time") == "attempt 2"


async def test_an_outcome_that_is_not_json_is_refused_and_the_attempt_stays_open(
    client: CairnQ, make_worker: MakeWorker
) -> None:
    worker = make_worker()

    @worker.task
    async def odd(ctx: TaskContext) -> str:
        with pytest.raises(SerializationError):
            await ctx.succeed(b"bytes")
        with pytest.raises(SerializationError):
            await ctx.fail({"details": object()})
        with pytest.raises(SerializationError):
            await ctx.submit("x", {1: 2})
        return "still open"

    async with worker.background():
        assert await client.call("odd") == "still open"


# --- on a thread -------------------------------------------------------------------------------------


async def test_the_blocking_context_has_the_same_names(client: CairnQ, make_worker: MakeWorker) -> None:
    worker = make_worker(concurrency=2)

    @worker.task
    def everything(ctx: Any, payload: Any) -> Any:
        ctx.progress(0.5, "half")
        assert ctx.heartbeat().progress == 0.5
        assert ctx.canceled() is False
        other = ctx.submit("leaf", [1])
        assert ctx.wait(other.id).result == [1]
        assert (ctx.lost_lease, ctx.lease_lost.is_set(), ctx.settled) == (False, False, False)
        seen = [ctx.name, ctx.queue, ctx.attempt, ctx.metadata, ctx.correlation_id, ctx.payload]
        assert ctx.succeed(seen).succeeded
        assert ctx.settled
        assert ctx.fail("too late") is None
        return "ignored"

    worker.register("leaf", lambda _ctx, payload: payload)
    async with worker.background():
        assert await client.call("everything", {"p": 1}) == ["everything", "default", 1, {}, None, {"p": 1}]


async def test_a_thread_learns_of_a_lost_lease_and_what_it_waits_for_ends(
    client: CairnQ, make_worker: MakeWorker, store: Any
) -> None:
    worker, gate, raised = make_worker(lease_ms=900), ThreadGate(), asyncio.Queue()
    loop = asyncio.get_running_loop()

    @worker.task
    def waits(ctx: Any, payload: Any) -> None:
        gate(ctx, payload)
        try:
            ctx.wait("task_00000000000000000000000000", timeout_ms=3_600_000)
        except LostLease:
            loop.call_soon_threadsafe(raised.put_nowait, (ctx.lost_lease, ctx.lease_lost.is_set()))

    async with worker.background():
        task = await client.submit("waits")
        await gate.entered()
        gate.open()
        await move_to_another_worker(store, task.id)
        assert await asyncio.wait_for(raised.get(), 60) == (True, True)
