"""Rows that another program wrote, within the protocol but beyond what our own submit lets through, stop nobody."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from cairnq import CairnQ, Task, TaskFailed
from cairnq.pure.ids import new_task_id
from tests.support.clock import ClockOfDatabase
from tests.support.tasks import ERROR, LEASE_MS, ME

ODD_PAYLOADS = {
    "nested 4000 deep": "[" * 4000 + "]" * 4000,
    "an integer of 10,000 digits": "9" * 10_000,
    "a number of 400 places": "0." + "0" * 399 + "1",
    "null": "null",
    "a bare string": '"42"',
    "a megabyte": '"' + "x" * 1_000_000 + '"',
}


def insert(dsn: str, **columns: Any) -> str:
    """One queued row, as raw SQL writes it."""
    row = {"id": new_task_id(), "name": "odd", "status": "queued", "payload": "{}", "priority": 9}
    row |= {"run_at_ms": 0, "created_at_ms": 0, "updated_at_ms": 0} | columns
    with psycopg.connect(dsn) as connection:
        names = ", ".join(row)
        marks = ", ".join(f"%({name})s" for name in row)
        connection.execute(f"insert into cairnq_tasks ({names}) values ({marks})".encode(), row)
    return str(row["id"])


def depth(value: Any) -> int:
    count = 0
    while isinstance(value, list):
        count += 1
        value = value[0] if value else None
    return count


@pytest.mark.parametrize("what", ODD_PAYLOADS)
async def test_an_odd_payload_stops_no_claim_and_no_read(client: CairnQ, database: str, what: str) -> None:
    odd = insert(database, payload=ODD_PAYLOADS[what], metadata=ODD_PAYLOADS[what])
    plain = await client.submit("x")
    assert [task.id for task in await client.list()] == [plain.id, odd]
    claimed = await client.store.claim(["default"], ME, limit=2)
    assert [task.id for task in claimed] == [odd, plain.id]
    assert [task.id for task in await client.store.claim(["default"], ME)] == []
    for task in claimed:
        assert (await client.store.complete(task.id, ME, None)).succeeded
    found = await client.get(odd)
    assert found is not None
    if "deep" in what:
        assert (depth(found.payload), depth(found.metadata)) == (4000, 4000)
    else:
        assert found.payload == found.metadata == expected(what)


def expected(what: str) -> Any:
    values = {"null": None, "a bare string": "42", "a megabyte": "x" * 1_000_000, "a number of 400 places": 1e-400}
    return 10**10_000 - 1 if "10,000" in what else values[what]


async def test_names_and_ids_are_free_text(client: CairnQ, database: str) -> None:
    ids = [insert(database, id=f"task_{odd}", name=odd, queue="q") for odd in ("", " ", "a'b", "%s", "\n", "é" * 300)]
    claimed = await client.store.claim(["q"], "anybody", limit=10)
    assert {task.id for task in claimed} == set(ids)
    for task in claimed:
        assert await client.store.heartbeat_batch([task.id], "anybody") == {task.id: False}
        assert (await client.store.complete(task.id, "anybody", task.name)).result == task.name


@pytest.mark.parametrize(
    ("columns", "status"),
    [
        ({"max_attempts": 0}, "failed"),
        ({"attempt": 7, "max_attempts": 3}, "failed"),
        ({"attempt": 2**31 - 2, "max_attempts": 2**31 - 1}, "failed"),
        ({"priority": -(2**31)}, "queued"),
    ],
)
async def test_odd_numbers_end_like_any_other(
    client: CairnQ, database: str, columns: dict[str, int], status: str
) -> None:
    odd = insert(database, **columns)
    [task] = await client.store.claim(["default"], ME)
    assert task.id == odd
    assert (await client.store.fail(task.id, ME, ERROR)).status == status


async def test_a_lapsed_row_without_a_worker_is_recovered(
    client: CairnQ, database: str, test_clock: ClockOfDatabase
) -> None:
    odd = insert(database, status="running", worker_id=None, lease_until_ms=1, attempt=1)
    assert await client.store.recover() == 1
    task = await client.get(odd)
    assert isinstance(task, Task)
    assert task.queued
    assert await client.store.recover() == 0
    test_clock.advance(LEASE_MS)


async def test_an_error_of_any_shape_is_waited_for(client: CairnQ, database: str) -> None:
    for odd in ("null", '"text"', "[1]", "{}", '{"code": 7}'):
        failed = insert(database, status="failed", error=odd, completed_at_ms=1)
        task = await client.wait(failed, timeout_ms=0)
        assert task.failed
        assert str(TaskFailed(task.error))
