"""Lists walk an index, newest first; nothing but the overview reads the whole table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cairnq.db.statements import Statements
from cairnq.store.postgres import PostgresStore
from tests.sql.backlog import CROWD, ELSEWHERE, FINISHED, RUNNING, SHARED, SMALL, Backlog, task_ids
from tests.sql.plans import Connection, Prepared, connect

PRIMARY = "cairnq_tasks_pkey"
FINISHED_INDEX = "cairnq_lean_finished_idx"
PAGE = 100

pytestmark = pytest.mark.parametrize("statistics", ["fresh", "idle"])
"""With none at all the planner may read all of a status and sort: once in a while, for a person, that will do."""


@pytest.fixture
def afresh(backlog: Backlog, statistics: str) -> Iterator[Connection]:
    """A connection of ours as the store prepares it for a list: planned each time, with the values."""
    with connect(backlog.dsn(statistics), "ours") as connection, connection.transaction():
        connection.execute(Statements("postgres", None).get("callers_plans", ["values"]).text.encode())
        yield connection


def page(**filters: Any) -> dict[str, Any]:
    return {"limit": PAGE, "offset": 0, **filters}


@pytest.mark.statement("list")
@pytest.mark.parametrize("filters", [{}, {"queue": SHARED}], ids=["all", "by queue alone"])
def test_list_walks_the_primary_key_newest_first(prepare, filters):
    plan = prepare("list", filters).explain(**page(**filters))
    assert plan.rows == PAGE
    assert plan.indexes() == {PRIMARY}
    assert plan.sorts() == []
    assert plan.read() == PAGE, plan


@pytest.mark.statement("list")
@pytest.mark.parametrize("filters", [{}, {"queue": ELSEWHERE}], ids=["alone", "and queue"])
@pytest.mark.parametrize("status", list(FINISHED))
def test_list_by_finished_status_walks_the_index_of_finished_rows(prepare, status, filters):
    """The newest 200,000 rows are live: a walk of the primary key would read them all."""
    plan = prepare("list", {"finished", *filters}, {"status": status}).explain(**page(**filters))
    assert plan.rows == PAGE
    assert plan.indexes() == {FINISHED_INDEX}
    # a page in the index's order; of a rare status all may be read and sorted
    assert plan.read() <= max(PAGE, FINISHED["canceled"] if status == "canceled" else 0), plan


@pytest.mark.statement("list")
@pytest.mark.parametrize("filters", [{}, {"queue": SMALL}], ids=["alone", "and queue"])
@pytest.mark.parametrize("status", ["queued", "running"])
def test_list_by_live_status_uses_an_index(afresh, status, filters):
    """No index has the live ones newest first: all that run are read, or what is newer than what waits."""
    plan = Prepared(afresh, "list", {"live", *filters}, {"status": status}).explain(**page(**filters))
    assert plan.scanned_whole() == []
    assert plan.read() <= RUNNING + 10 * CROWD + PAGE, plan


@pytest.mark.statement("list")
@pytest.mark.parametrize("status", [None, "queued", "failed"])
def test_list_by_root_reads_the_family_alone(afresh, status):
    """Every hundredth task has one child; the root comes by primary key."""
    root = task_ids(1, 100)[-1]
    kind = [] if status is None else ["finished" if status in FINISHED else "live"]
    literals = {} if status is None else {"status": status}
    plan = Prepared(afresh, "list", {"root_id", *kind}, literals).explain(**page(root_id=root))
    assert plan.rows == (2 if status is None else 0)
    assert plan.indexes() == {"cairnq_lean_root_idx", PRIMARY}
    assert plan.read() <= 3, plan  # the child by its root, then both by their ids


@pytest.mark.statement("list")
@pytest.mark.parametrize("filters", [{}, {"queue": SHARED}], ids=["alone", "and queue"])
def test_list_by_correlation_reads_the_correlated_alone(afresh, filters):
    plan = Prepared(afresh, "list", {"correlation_id", *filters}).explain(**page(correlation_id="order-3", **filters))
    assert plan.rows > 0
    assert plan.indexes() == {"cairnq_lean_correlation_idx"}
    assert plan.read() <= 50, plan


@pytest.mark.statement("get_by_keys", "get_status_by_key")
def test_tasks_under_keys_are_found_by_both_primary_keys(prepare):
    keys = [f"key-{task_id}" for task_id in task_ids(1, 20)]
    many = prepare("get_by_keys").explain(keys=keys)
    assert (many.rows, many.read(), many.read("cairnq_task_keys")) == (20, 20, 20)
    one = prepare("get_status_by_key").explain(key=keys[0])
    assert (one.rows, one.read(), one.read("cairnq_task_keys")) == (1, 1, 1)
    for plan in (many, one):
        assert plan.indexes() == {"cairnq_task_keys_pkey", PRIMARY}


@pytest.mark.statement("stats")
def test_overview_reads_the_table_once(prepare):
    """No index serves it, on purpose: see the statement's header."""
    plan = prepare("stats").explain()
    assert plan.rows > len(FINISHED)
    assert set(plan.scanned_whole()) <= {"cairnq_tasks"}
    narrowed = prepare("stats", ["queue"]).explain(queue=SMALL)
    assert narrowed.rows == 1


@pytest.mark.statement("list", "stats", "callers_plans")
async def test_store_plans_lists_and_overviews_each_time_they_run(backlog: Backlog, statistics: str):
    """A list by root, under the settings of our connections and a generic plan, would read every row."""
    store = PostgresStore(backlog.dsn(statistics), max_size=1)
    for _ in range(8):
        assert len(await store.list(status="queued", queue=SMALL, limit=5)) == 5
        assert len(await store.list(root_id=task_ids(1, 100)[-1])) == 2
    await store.stats(SMALL)
    async with store._autocommit() as bound:
        plans = await bound.session.rows(
            "select sum(generic_plans), sum(custom_plans) from pg_prepared_statements"
            " where statement like 'select t.%' and (statement like '%order by%' or statement like '%group by%')",
            [],
        )
    await store.close()
    assert tuple(map(int, plans[0])) == (0, 2 * 8 + 1)
