"""Text and JSON cross the database as they are, whatever they look like."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cairnq.pure.models import Settlement
from cairnq.store.postgres import PostgresStore

HOSTILE = [
    *("'", "''", '"', "\\", "\\'", "$1", ":id", "@now_ms", "^status", "%s", "--", "/*", "; drop table cairnq_tasks;"),
    *(
        "{}",
        '{"a"',
        "{a,b}",
        "(a,b)",
        "null",
        "NULL",
        " ",
        "\t",
        "\r\n",
        "\u2028",
        "\ufeff",
        "\U0001f600",
        "e\u0301",
        "\u0131",
    ),
]
TEXT = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), min_size=1, max_size=200),
)
JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53), 2**53),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXT,
        st.sampled_from(["42", "null", "true", '"', "{}", "[]", ""]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)),
    max_leaves=12,
)
FEW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.mark.statement("submit_one", "get", "get_by_keys", "list")
@FEW
@given(name=TEXT, queue=TEXT, key=TEXT, correlation=TEXT, metadata=st.dictionaries(TEXT, JSON, max_size=3))
async def test_hostile_text_names_tasks_queues_and_keys(
    store: PostgresStore, name: str, queue: str, key: str, correlation: str, metadata: dict[str, Any]
):
    plain = await store.submit(name, queue=queue, correlation_id=correlation, metadata=metadata)
    keyed = await store.submit(name, queue=queue, key=key, conflict="replace")
    read = await store.get(plain.id)
    assert read is not None
    assert replace(read, metadata=metadata) == plain
    assert same(read.metadata, metadata)
    assert (read.name, read.queue, read.correlation_id) == (name, queue, correlation)
    assert await store.get_by_key(key) == keyed
    found = {task.id for task in await store.list(queue=queue, name=name, status="queued")}
    assert {plain.id, keyed.id} <= found
    claimed = {task.id for task in await store.claim([queue], "w", limit=10, names=[name])}
    assert {plain.id, keyed.id} <= claimed


@pytest.mark.statement("submit_one", "settle", "progress")
@FEW
@given(payload=JSON, result=JSON, details=JSON, message=TEXT)
async def test_any_json_is_a_payload_a_result_or_part_of_an_error(
    store: PostgresStore, payload: Any, result: Any, details: Any, message: str
):
    done, failed = await store.submit("a", payload), await store.submit("a", [payload], max_attempts=1)
    claimed = {task.id: task for task in await store.claim(["default"], "w", limit=10)}
    assert same(claimed[done.id].payload, {} if payload is None else payload)
    assert same(claimed[failed.id].payload, [payload])
    assert (await store.progress(done.id, "w", 0.25, message)).message == message
    error = {"type": "X", "code": "x", "message": message, "retryable": False, "details": details}
    settlements = [
        Settlement.complete(done.id, 1, result),
        Settlement.fail(failed.id, 1, error, retryable=False),
    ]
    assert await store.settle_many("w", settlements) == ["succeeded", "failed"]
    first, second = await store.get(done.id), await store.get(failed.id)
    assert first is not None
    assert second is not None
    assert same(first.result, result)
    assert same(second.error, error)


@pytest.mark.statement("submit", "submit_alike")
@pytest.mark.parametrize("value", ["42", "null", "true", '""', "", '{"a":1}', "[]"])
async def test_a_string_that_looks_like_json_stays_that_string(store: PostgresStore, value: str):
    item = {"name": "a", "payload": value, "metadata": {"m": value}}
    alike = await store.submit_many([item, item])
    differing = await store.submit_many([item, {"name": "b"}])
    for task in (*alike, differing[0]):
        read = await store.get(task.id)
        assert read is not None
        assert (read.payload, read.metadata) == (value, {"m": value})


def same(one: Any, other: Any) -> bool:
    """Equal, and booleans no numbers; 1.0 is 1, and 1e30 the integer nearest to it: jsonb knows no types of numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(other, float):
        return type(one) in (int, float) and float(one) == other
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
