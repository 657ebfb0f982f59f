"""What one SDK submits the other runs, on one database that either of them made."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cairnq import CairnQ, TaskContext
from tests.support.peers import PeerError, PeerProcess
from tests.support.routes import Route

VALUES: list[Any] = [True, 0, -1.5, 2**53, "", "42", "null", "é €", [], [1, [2]], {}, {"a": {"b": None}}]


async def echo(ctx: TaskContext, payload: Any) -> Any:
    return payload


async def signed(ctx: TaskContext, payload: Any) -> Any:
    return {"by": "us", "attempt": ctx.attempt}


async def test_our_worker_runs_what_their_client_submits(shared: str, ours: CairnQ, theirs: PeerProcess) -> None:
    worker = Route(shared).worker()
    worker.register("echo", echo)
    async with worker.background():
        tasks = [await theirs.call("submit", name="echo", payload=value) for value in VALUES]
        ended = [await theirs.call("wait", task_id=task["id"]) for task in tasks]
    assert [(task["status"], task["result"]) for task in ended] == [("succeeded", value) for value in VALUES]
    assert {task["worker_id"] for task in ended} == {worker.worker_id}
    assert await ours.stats() == {
        "default": {"queued": 0, "running": 0, "succeeded": len(VALUES), "failed": 0, "canceled": 0}
    }


async def test_their_worker_runs_what_our_client_submits(ours: CairnQ, theirs: PeerProcess) -> None:
    worker_id = await theirs.call("work", handlers={"echo": "echo"}, queues=["default"])
    tasks = [await ours.submit("echo", value) for value in VALUES]
    ended = [await ours.wait(task.id) for task in tasks]
    assert [(task.status, task.result) for task in ended] == [("succeeded", value) for value in VALUES]
    assert {task.worker_id for task in ended} == {worker_id}


async def test_no_payload_is_an_empty_object_to_both(ours: CairnQ, theirs: PeerProcess) -> None:
    mine, peers = await ours.submit("x"), await theirs.call("submit", name="x")
    assert (await theirs.call("get", task_id=mine.id))["payload"] == {}
    read = await ours.get(peers["id"])
    assert read is not None
    assert read.payload == peers["payload"] == mine.payload == {}


async def test_what_was_submitted_crosses_whole(ours: CairnQ, theirs: PeerProcess) -> None:
    task = await ours.submit(
        "x", {"a": 1}, queue="q", key="k", max_attempts=7, priority=-2, metadata={"m": [1]}, correlation_id="c"
    )
    seen = await theirs.call("get", task_id=task.id)
    assert seen == {field: getattr(task, field) for field in seen}
    assert seen["root_id"] == task.id
    assert await theirs.call("get_by_key", key="k") == seen
    again = await theirs.call("submit", name="y", key="k")
    assert again["id"] == task.id


async def test_each_name_goes_to_the_worker_that_has_a_handler(shared: str, ours: CairnQ, theirs: PeerProcess) -> None:
    await theirs.call("work", handlers={"theirs": "signed"}, queues=["default"])
    worker = Route(shared).worker(concurrency=4)
    worker.register("ours", signed)
    async with worker.background():
        tasks = [await ours.submit(name) for _ in range(20) for name in ("ours", "theirs")]
        ended = [await ours.wait(task.id) for task in tasks]
    assert {(task.name, task.result["by"]) for task in ended} == {("ours", "us"), ("theirs", "peer")}
    assert all(task.attempt == 1 for task in ended)


@pytest.mark.parametrize("conflict", ["reuse", "reject"])
async def test_a_keyed_race_has_one_winner(ours: CairnQ, theirs: PeerProcess, conflict: Any) -> None:
    for key in (f"key {number}" for number in range(10)):
        submits = [ours.submit("x", key=key, conflict=conflict) for _ in range(4)]
        peer_submits = [theirs.call("submit", name="x", key=key, conflict=conflict) for _ in range(4)]
        outcomes = await asyncio.gather(*submits, *peer_submits, return_exceptions=True)
        ids = {identify(outcome) for outcome in outcomes}
        assert len(ids - {"AlreadyExists"}) == 1, outcomes
        refused = sum(identify(outcome) == "AlreadyExists" for outcome in outcomes)
        assert refused == (7 if conflict == "reject" else 0)
    assert (await ours.stats())["default"]["queued"] == 10


def identify(outcome: Any) -> str:
    """The id of the task that a submit gave, or the class of what it raised."""
    match outcome:
        case PeerError():
            return outcome.kind
        case BaseException():
            return type(outcome).__name__
        case dict():
            return str(outcome["id"])
        case _:
            return str(outcome.id)
