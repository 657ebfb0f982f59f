"""Any JSON value crosses every JSON column whole; what JSON or jsonb cannot hold is refused before a write."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cairnq import PostgresStore, SerializationError
from cairnq.pure.models import Settlement
from tests.support.tasks import ME, claimed

VALUES: list[Any] = [
    *(True, False, 0, -1, 1.5, 2**53, 1e-300, "", "42", "null", "true", "é ✓ 🂡", "\\u0000", "a\\\\u0000", "\x01\x7f"),
    *([], {}, [None], {"": None}, {"a": [{"b": [1, [2, []]]}]}, ["x" * 100_000]),
]

CIRCULAR: list[Any] = []
CIRCULAR.append(CIRCULAR)

REFUSED: dict[str, Any] = {
    "not a number": math.nan,
    "infinity": [math.inf],
    "bytes": b"x",
    "a set": {1},
    "a datetime": dt.datetime.now(tz=dt.UTC),
    "a decimal": decimal.Decimal(1),
    "a circular list": CIRCULAR,
    "a NUL": "a\x00b",
    "a NUL in a key": {"a\x00b": 1},
    "a lone surrogate": ["\ud800"],
    "a key that is no string": {1: 2},
    "an object": object(),
}


async def test_a_value_comes_back_as_it_was(store: PostgresStore) -> None:
    for value in VALUES:
        task = await store.submit("x", value, metadata={"m": value})
        read = await store.get(task.id)
        assert read is not None
        assert (read.payload, read.metadata) == (value, {"m": value})
        assert (task.payload, task.metadata) == (value, {"m": value})
        [running] = await store.claim(["default"], ME)
        assert running.payload == value
        done = await store.complete(running.id, ME, value)
        assert done.result == value
        assert type(done.result) is type(value)


async def test_a_number_beyond_53_bits_keeps_its_value_and_not_its_type(store: PostgresStore) -> None:
    for number in (1e300, -1e30, 7.205759403792286e16, 10**400):
        read = await store.get((await store.submit("x", [number])).id)
        assert read is not None
        assert read.payload == [number] or float(read.payload[0]) == number


async def test_null_is_a_result(store: PostgresStore) -> None:
    running = await claimed(store)
    assert (await store.complete(running.id, ME, None)).result is None


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(-(2.0**53), 2.0**53)
    | st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])), inner, max_size=4
        )
    ),
    max_leaves=20,
)


# The fixture is shared by the examples on purpose: each inserts rows of its own.
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(json_values, min_size=1, max_size=8))
async def test_any_json_crosses_in_a_batch(store: PostgresStore, values: list[Any]) -> None:
    tasks = await store.submit_many([{"name": "x", "payload": value, "queue": "q"} for value in values])
    running = {task.id: task for task in await store.claim(["q"], ME, limit=len(values))}
    assert [running[task.id].payload for task in tasks] == [{} if value is None else value for value in values]
    settled = await store.settle_many(
        ME, [Settlement.complete(task.id, 1, value) for task, value in zip(tasks, values, strict=True)]
    )
    assert settled == ["succeeded"] * len(values)
    for task, value in zip(tasks, values, strict=True):
        read = await store.get(task.id)
        assert read is not None
        assert read.result == value


async def test_what_json_cannot_hold_is_refused_before_anything_is_written(store: PostgresStore) -> None:
    for value in REFUSED.values():
        with pytest.raises(SerializationError):
            await store.submit("x", value)
        with pytest.raises(SerializationError):
            await store.submit("x", metadata={"m": value})
        with pytest.raises(SerializationError):
            await store.submit_many([{"name": "x"}, {"name": "x", "payload": value}])
    assert await store.stats() == {}
    running = await claimed(store)
    for value in REFUSED.values():
        with pytest.raises(SerializationError):
            await store.complete(running.id, ME, value)
    assert await store.get(running.id) == running
