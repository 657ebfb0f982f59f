"""What cannot be right is a named error that says which argument and which value, before anything is written."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cairnq import CairnQ, CairnQError, InvalidArgument

Call = Callable[[CairnQ], Awaitable[Any]]

CALLS: dict[str, tuple[Call, str]] = {
    "unknown conflict": (lambda c: c.submit("x", key="k", conflict="newest"), "unknown conflict strategy 'newest'"),  # type: ignore[arg-type]
    "no attempts": (lambda c: c.submit("x", max_attempts=0), "max_attempts must be from 1 to .*, got 0"),
    "too many attempts": (lambda c: c.submit("x", max_attempts=2**31), "max_attempts must be from 1 to .*, got"),
    "attempts as text": (lambda c: c.submit("x", max_attempts="3"), "max_attempts must be an integer, not str: '3'"),  # type: ignore[arg-type]
    "attempts as bool": (lambda c: c.submit("x", max_attempts=True), "max_attempts must be an integer, not bool"),
    "negative delay": (lambda c: c.submit("x", run_at_delay_ms=-1), "delay in ms must be from 0 to .*, got -1"),
    "fractional delay": (lambda c: c.submit("x", delay_ms=1.5), "delay in ms must be an integer, not float: 1.5"),  # type: ignore[arg-type]
    "endless delay": (lambda c: c.submit("x", delay_ms=2**62), "delay in ms must be from 0 to"),
    "two delays": (
        lambda c: c.submit("x", delay_ms=1, run_at_delay_ms=1),
        "give delay_ms or run_at_delay_ms, not both",
    ),
    "huge priority": (lambda c: c.submit("x", priority=2**31), "priority must be from .*, got 2147483648"),
    "empty name": (lambda c: c.submit(""), "name must not be empty"),
    "name with NUL": (lambda c: c.submit("a\x00b"), "name holds a NUL character.*'a.x00b'"),
    "name as bytes": (lambda c: c.submit(b"x"), "name must be a string, not bytes"),  # type: ignore[call-overload]
    "long name": (lambda c: c.submit("n" * 1001), "name is 1001 bytes long, at most 1000 fit"),
    "surrogate in name": (lambda c: c.submit("\ud800"), "name holds a lone surrogate"),
    "empty queue": (lambda c: c.submit("x", queue=""), "queue must not be empty"),
    "queue with NUL": (lambda c: c.submit("x", queue="\x00"), "queue holds a NUL character"),
    "metadata list": (lambda c: c.submit("x", metadata=[1]), "metadata must be a mapping, not list"),  # type: ignore[arg-type]
    "empty correlation": (lambda c: c.submit("x", correlation_id=""), "correlation_id must not be empty"),
    "unknown session": (lambda c: c.submit("x", session=object()), "session must be .*, not object"),
    "a number of items": (lambda c: c.submit_many(5), "submit_many takes a list of items, not int"),  # type: ignore[arg-type]
    "a string of items": (lambda c: c.submit_many("xy"), "submit_many takes a list of items, not str"),  # type: ignore[arg-type]
    "one item": (lambda c: c.submit_many({"name": "x"}), "submit_many takes a list of items, not dict"),  # type: ignore[arg-type]
    "item without name": (lambda c: c.submit_many([{"name": "x"}, {"payload": 1}]), "item 1 of submit_many"),
    "item with a typo": (lambda c: c.submit_many([{"name": "x", "paylod": 1}]), "item 0 of submit_many.*paylod"),
    "unknown status": (lambda c: c.list(status="done"), "unknown status 'done'; it is one of queued, running"),  # type: ignore[arg-type]
    "negative limit": (lambda c: c.list(limit=-1), "limit must be from 0 to .*, got -1"),
    "negative offset": (lambda c: c.list(offset=-1), "offset must be from 0 to .*, got -1"),
    "purge the living": (lambda c: c.purge(status="running"), "only finished tasks can be purged: status 'running'"),
    "purge nothing": (lambda c: c.purge(limit=-1), "limit must be from 0 to .*, got -1"),
    "purge the future": (lambda c: c.purge(older_than_ms=-1), "older_than_ms must be from 0 to .*, got -1"),
    "negative wait": (lambda c: c.wait("task_x", timeout_ms=-1), "timeout_ms must be from 0 to .*, got -1"),
    "no pause": (lambda c: c.wait("task_x", poll_ms=0), "poll_ms must be from 1 to .*, got 0"),
    "two time-outs": (lambda c: c.call("x", timeout_ms=1, wait_timeout_ms=1), "give timeout_ms or wait_timeout_ms"),
    "claim as text": (lambda c: c.store.claim("default", "w"), "queues must be a list of strings, not the string"),
    "no lease": (lambda c: c.store.claim(["default"], "w", lease_ms=0), "lease_ms must be from 1 to .*, got 0"),
    "claim below zero": (lambda c: c.store.claim(["default"], "w", limit=-1), "limit must be from 0 to .*, got -1"),
    "nobody claims": (lambda c: c.store.claim(["default"], ""), "worker_id must not be empty"),
    "progress": (lambda c: c.store.progress("task_x", "w", 1.5), "progress must be a number from 0.0 to 1.0, got 1.5"),
    "progress NaN": (lambda c: c.store.progress("task_x", "w", float("nan")), "progress must be a number from"),
    "message": (lambda c: c.store.progress("task_x", "w", message="\x00"), "message holds a NUL character"),
    "fail delay": (lambda c: c.store.fail("task_x", "w", {}, delay_ms=-1), "delay_ms must be from 0 to .*, got -1"),
    "beat of nothing": (lambda c: c.store.heartbeat("task_x", "w", lease_ms=0), "lease_ms must be from 1 to .*, got 0"),
    "beat batch": (lambda c: c.store.heartbeat_batch(["task_x"], "w", -5), "lease_ms must be from 1 to .*, got -5"),
    "id of NUL": (lambda c: c.get("\x00"), "id holds a NUL character"),
    "depth": (lambda c: c.queue_depth("q", -1), "max_depth must be from .*, got -1"),
}


@pytest.mark.fault(row=26)
async def test_each_is_refused_by_name_before_anything_is_written(client: CairnQ) -> None:
    unlike: dict[str, Any] = {}
    for what, (call, says) in CALLS.items():
        try:
            unlike[what] = await call(client)
        except (InvalidArgument, TypeError) as refused:
            if not isinstance(refused, InvalidArgument) or not re.search(says, str(refused)):
                unlike[what] = refused
    assert unlike == {}
    assert issubclass(InvalidArgument, CairnQError)
    assert issubclass(InvalidArgument, ValueError)
    assert await client.stats() == {}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_size": 0}, "max_size must be from 1 to"),
        ({"min_size": 5, "max_size": 2}, "max_size must be from 5 to .*, got 2"),
        ({"schema": ""}, "schema must not be empty"),
        ({"schema": "s" * 64}, "schema is 64 bytes long, at most 63 fit"),
        ({"max_queue_depth": 0}, "max_queue_depth must be from 1 to"),
        ({"max_queue_depth": {"q": -1}}, "max_queue_depth of queue 'q' must be from 1 to"),
        ({"retention": -1}, "older_than_ms must be from 0 to .*, got -1"),
    ],
)
def test_an_option_is_refused_before_a_connection_is_made(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArgument, match=says):
        CairnQ.postgres("postgresql://nobody@127.0.0.1:1/none", **options)


@pytest.fixture
async def empty_answers(client: CairnQ) -> dict[str, Any]:
    return {
        "claim without queues": await client.store.claim([], "w"),
        "claim without names": await client.store.claim(["default"], "w", names=[]),
        "claim of none": await client.store.claim(["default"], "w", limit=0),
        "an empty batch": await client.submit_many([]),
        "a list of none": await client.list(limit=0),
        "no beats": await client.store.heartbeat_batch([], "w"),
        "a purge of none": await client.purge(limit=0),
    }


async def test_asking_for_nothing_gives_nothing(empty_answers: dict[str, Any]) -> None:
    assert {what for what, answer in empty_answers.items() if len(answer) > 0} == set()
