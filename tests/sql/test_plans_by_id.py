"""Settle, beat and progress find their rows by id, whatever the statistics say about what is running.

With statistics of an hour in which nothing ran, an index of the running rows looks empty to the planner; a prepared
statement that may use it turns to it at its sixth execution and reads every running row, for ever.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.sql.backlog import BUSY, running
from tests.sql.plans import Plan, Prepared, connect

BY_ID = {"cairnq_tasks_pkey", "cairnq_lean_keys_task_idx"}
COUNT = 100
PAGES_PER_ROW = 30
"""Two descents by id, the row, its new version, and an entry in each index: measured 15 to 21."""


def settling(count: int, **more: Any) -> dict[str, Any]:
    return {"worker_id": BUSY, "ids": running(count), "attempts": [1] * count, "bodies": ["1"] * count, **more}


def beating(count: int) -> dict[str, Any]:
    same = {"worker_ids": [BUSY] * count, "attempts": [1] * count, "leases_ms": [30_000] * count}
    return {"ids": running(count), **same}


SETTLE = settling(COUNT, outcomes=["complete"] * COUNT, delays_ms=[0] * COUNT)
RELEASE = settling(COUNT, outcomes=["release"] * COUNT, delays_ms=[0] * COUNT) | {"bodies": [None] * COUNT}
FAIL = settling(COUNT, outcomes=["fail"] * COUNT, delays_ms=[1000] * COUNT)
PROGRESS = {"id": running(1)[0], "worker_id": BUSY, "attempt": 1, "progress": 0.5, "message": "half"}

WRITES = [
    pytest.param("settle", SETTLE, id="settle", marks=pytest.mark.statement("settle")),
    pytest.param("settle", RELEASE, id="release", marks=pytest.mark.statement("settle")),
    pytest.param("settle", FAIL, id="fail", marks=pytest.mark.statement("settle")),
    pytest.param("settle_forget", settling(COUNT), id="forget", marks=pytest.mark.statement("settle_forget")),
    pytest.param("beat", beating(500), id="beat", marks=pytest.mark.statement("beat")),
    pytest.param("progress", PROGRESS, id="progress", marks=pytest.mark.statement("progress")),
]


def assert_found_by_id(plan: Plan, rows: int) -> None:
    assert plan.rows == rows
    assert plan.scanned_whole() == []
    assert plan.indexes() <= BY_ID, plan
    assert plan.read() <= 2 * rows, plan
    assert plan.buffers <= PAGES_PER_ROW * rows, plan
    assert plan.busiest() <= 2 * rows, plan


@pytest.mark.parametrize(("statement", "values"), WRITES)
def test_write_of_running_tasks_finds_them_by_id(prepare, statement, values):
    assert_found_by_id(prepare(statement).explain(**values), len(values.get("ids", "1")))


@pytest.mark.parametrize(("statement", "values"), WRITES)
def test_write_of_running_tasks_keeps_its_plan_over_eight_executions(backlog, statistics, statement, values):
    with connect(backlog.dsn(statistics), "auto") as connection:
        prepared = Prepared(connection, statement)
        for plan in [prepared.explain(**values) for _ in range(8)]:
            assert_found_by_id(plan, len(values.get("ids", "1")))


@pytest.mark.parametrize("planning", ["ours", "auto", "generic"])
@pytest.mark.parametrize(("statement", "values"), WRITES)
def test_write_of_running_tasks_keeps_off_other_sdks_indexes(joined, planning, statement, values):
    with connect(joined, planning) as connection:
        prepared = Prepared(connection, statement)
        for plan in [prepared.explain(**values) for _ in range(8)]:
            assert plan.indexes() <= BY_ID, plan
            assert plan.read() <= 2 * len(values.get("ids", "1")), plan


@pytest.mark.statement("standing")
def test_reading_back_attempts_finds_them_by_id(prepare):
    plan = prepare("standing").explain(ids=running(COUNT), worker_ids=[BUSY] * COUNT, attempts=[1] * COUNT)
    assert plan.rows == COUNT
    assert plan.indexes() == {"cairnq_tasks_pkey"}
    assert plan.read() == COUNT, plan


@pytest.mark.statement("names")
def test_the_names_of_tasks_are_read_by_their_ids(prepare):
    plan = prepare("names").explain(ids=running(COUNT))
    assert plan.indexes() == {"cairnq_tasks_pkey"}
    assert plan.read() == COUNT, plan


@pytest.mark.statement("get", "get_status")
def test_one_task_is_read_by_id(prepare):
    for statement in ("get", "get_status"):
        plan = prepare(statement).explain(id=running(1)[0])
        assert (plan.rows, plan.indexes(), plan.read()) == (1, {"cairnq_tasks_pkey"}, 1)


@pytest.mark.statement("cancel", "retry")
def test_cancel_and_retry_find_their_task_by_id(prepare):
    cancel = prepare("cancel").explain(id=running(1)[0])
    assert (cancel.rows, cancel.indexes(), cancel.read()) == (1, {"cairnq_tasks_pkey"}, 1)
    retry = prepare("retry").explain(id=running(1)[0], reset_attempt=False)
    assert (retry.rows, retry.indexes(), retry.read()) == (0, {"cairnq_tasks_pkey"}, 1)
