"""A claim reads what it takes, and little more: whatever waits behind it, ahead of it or beside it."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from cairnq.db.statements import Statements
from tests.sql.backlog import (
    FOREIGN,
    HAUNTED,
    LADDER,
    MINE,
    PRIORITIES,
    QUIET,
    SHARED,
    SMALL,
    STAIRS,
    SUSPECTS,
    YOURS,
)
from tests.sql.plans import Plan, Prepared, connect

CLAIM_INDEXES = {"cairnq_lean_claim_idx", "cairnq_lean_claim_name_idx", "cairnq_lean_suspect_idx"}
LIMIT = 10
PAGES_PER_DESCENT = 5
"""From an index's root to a row of the table, at these sizes."""


def asked(queue: str, names: list[str] | None = None) -> dict[str, Any]:
    values: dict[str, Any] = {"queues": [queue], "worker_id": "worker_new", "lease_ms": 30_000, "limit": LIMIT}
    return values if names is None else {**values, "names": names}


def assert_walks_in_claim_order(plan: Plan, *, names: int = 1) -> None:
    """Index entries in their order, no row thrown away, no sort of more than was wanted from each source."""
    assert plan.scanned_whole() == []
    assert plan.indexes() <= CLAIM_INDEXES
    assert plan.thrown_away() == 0, plan
    assert all(rows <= LIMIT * names for rows in plan.sorts()), plan


@pytest.mark.statement("claim")
def test_claim_costs_the_same_with_a_thousand_and_with_two_hundred_thousand_queued(prepare):
    claim = prepare("claim")
    small, large = claim.explain(**asked(SMALL)), claim.explain(**asked(SHARED))
    assert small.rows == large.rows == LIMIT
    for plan in (small, large):
        assert_walks_in_claim_order(plan)
    assert large.buffers <= 1.2 * small.buffers, large


@pytest.mark.statement("claim_named")
@pytest.mark.parametrize(
    "names",
    [
        pytest.param([MINE, YOURS, FOREIGN], id="all that are queued"),
        pytest.param([MINE, YOURS], id="foreign names ahead"),
        pytest.param([MINE], id="foreign names ahead and among them"),
    ],
)
def test_named_claim_costs_the_same_with_a_thousand_and_with_two_hundred_thousand_queued(prepare, names):
    claim = prepare("claim_named")
    small, large = claim.explain(**asked(SMALL, names)), claim.explain(**asked(SHARED, names))
    assert small.rows == large.rows == LIMIT
    for plan in (small, large):
        assert_walks_in_claim_order(plan, names=len(names))
    assert large.buffers <= 1.2 * small.buffers, large


@pytest.mark.statement("claim_named")
def test_named_claim_reads_no_row_of_a_foreign_name(prepare):
    plan = prepare("claim_named").explain(**asked(SHARED, [MINE]))
    # twice the rows it takes (found, then updated), a look at each of three priorities, and one at the names
    assert plan.read() <= 2 * LIMIT + 3 + 1, plan


@pytest.mark.statement("claim")
def test_claim_steps_over_a_priority_full_of_backoff(prepare):
    """The shared queue holds 20,000 rows in backoff at priority 100, above all that is due."""
    plan = prepare("claim").explain(**asked(SHARED))
    assert plan.read() <= 2 * LIMIT + 3, plan


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        pytest.param("claim", None, id="any name", marks=pytest.mark.statement("claim")),
        pytest.param("claim_named", [MINE], id="one name", marks=pytest.mark.statement("claim_named")),
    ],
)
def test_claim_that_goes_on_steps_over_the_entries_of_what_was_claimed(connection, prepare, statement, names):
    first, onward = prepare(statement), prepare(statement, ["onward"])
    with connection.transaction(force_rollback=True):
        connection.execute(
            "insert into cairnq_tasks "
            "(id, name, queue, status, payload, run_at_ms, root_id, created_at_ms, updated_at_ms) "
            "select 'onward_' || n, 'mine', 'onward', 'queued', '1', n, 'onward_' || n, 1, 1 "
            "from generate_series(1, 3000) n"
        )
        untouched = first.explain(**asked("onward", names))
        first.explain(keep=True, **asked("onward", names) | {"limit": 2000})
        again = first.explain(**asked("onward", names))
        place = {"from_priority": 0, "from_run_at_ms": 2000, "from_id": "onward_2000"}
        plan = onward.explain(**asked("onward", names), **place)
    assert untouched.rows == again.rows == plan.rows == LIMIT
    assert_walks_in_claim_order(plan)
    assert plan.buffers <= untouched.buffers + 2 * PAGES_PER_DESCENT < again.buffers, plan
    assert plan.read() <= 2 * LIMIT + 1, plan


@pytest.mark.statement("outlook")
@pytest.mark.parametrize("queue", [SHARED, SMALL, "nobody"])
def test_outlook_reads_a_handful_of_what_waits_and_of_what_runs_no_more_than_its_bound(prepare, queue):
    plan = prepare("outlook").explain(queues=[queue], bound=1_000)
    assert plan.scanned_whole() == []
    assert plan.indexes() <= {*CLAIM_INDEXES, "cairnq_lean_running_idx"}
    assert plan.thrown_away() == 0, plan
    assert plan.read() <= 1_000 + 8, plan


@pytest.mark.statement("outlook")
def test_outlook_steps_over_what_is_in_backoff_at_each_priority(prepare):
    plan = prepare("outlook").explain(queues=[STAIRS], bound=1_000)
    assert plan.indexes() <= {*CLAIM_INDEXES, "cairnq_lean_running_idx"}
    assert plan.read() <= 1_000 + 3 * PRIORITIES + 8, plan


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        pytest.param("claim", None, id="any name", marks=pytest.mark.statement("claim")),
        pytest.param("claim_named", [MINE, YOURS], id="both names", marks=pytest.mark.statement("claim_named")),
        pytest.param("claim_named", [MINE], id="one name of two", marks=pytest.mark.statement("claim_named")),
    ],
)
def test_claim_stops_at_the_priorities_it_needs(prepare, statement, names):
    """Hundreds of priorities with two due rows each: ten rows are found in the first five (one name: the first ten)."""
    plan = prepare(statement).explain(**asked(LADDER, names))
    assert plan.rows == LIMIT
    assert_walks_in_claim_order(plan, names=2)
    assert plan.read() <= 2 * LIMIT + 4 * LIMIT, plan


@pytest.mark.statement("claim")
def test_claim_below_hundreds_of_priorities_in_backoff_costs_two_looks_each(prepare):
    """10,000 rows in backoff, twenty to a priority: the cost follows the priorities and not the rows."""
    plan = prepare("claim").explain(**asked(STAIRS))
    assert plan.rows == LIMIT
    assert_walks_in_claim_order(plan)
    assert plan.buffers <= 2 * PAGES_PER_DESCENT * (PRIORITIES + 2 * LIMIT), plan


@pytest.mark.statement("claim", "claim_named")
def test_claim_of_an_empty_queue_is_a_look_at_the_index(prepare):
    for plan in (
        prepare("claim").explain(**asked("nobody")),
        prepare("claim_named").explain(**asked("nobody", [MINE])),
    ):
        assert plan.rows == 0
        assert plan.buffers <= 4 * PAGES_PER_DESCENT


@pytest.mark.statement("claim_named", "due")
def test_claim_behind_thousands_of_suspects_reads_none_of_them(prepare):
    claim, due = prepare("claim_named"), prepare("due", ["names"])
    quiet, haunted = (claim.explain(**asked(queue, [MINE, YOURS])) for queue in (QUIET, HAUNTED))
    assert quiet.rows == haunted.rows == LIMIT
    assert_walks_in_claim_order(haunted, names=2)
    # the names are walked apart: each may come to its limit, after a look or two; and one look at the suspects
    assert haunted.read() <= 3 * LIMIT + 4 + 1, haunted
    look = due.explain(**asked(HAUNTED, [MINE, YOURS]))
    assert look.buffers <= 8 * PAGES_PER_DESCENT, look


@pytest.mark.statement("claim_suspect", "suspect_waits")
@pytest.mark.parametrize("queue", [SHARED, HAUNTED])
def test_claim_of_a_suspect_walks_suspects_alone(prepare, queue):
    claim, look = prepare("claim_suspect"), prepare("suspect_waits")
    for plan in (claim.explain(**asked(queue, [MINE, YOURS])), look.explain(**asked(queue, [MINE, YOURS]))):
        assert plan.indexes() <= {"cairnq_lean_suspect_idx"}
        assert plan.scanned_whole() == []
        assert plan.buffers <= 8 * PAGES_PER_DESCENT, plan
    assert claim.explain(**asked(queue, [MINE, YOURS])).rows == (1 if queue == HAUNTED else 0)


@pytest.mark.statement("claim_suspect")
def test_claim_of_a_suspect_reads_no_more_than_the_suspects_of_foreign_names(prepare):
    plan = prepare("claim_suspect").explain(**asked(HAUNTED, [FOREIGN]))
    assert plan.rows == 0
    assert plan.read() <= SUSPECTS


@pytest.mark.statement("claim")
def test_claim_of_several_queues_takes_at_most_its_limit_from_each(prepare):
    plan = prepare("claim").explain(**(asked(SHARED) | {"queues": [SHARED, SMALL, LADDER]}))
    assert plan.rows == LIMIT
    assert plan.scanned_whole() == []
    assert plan.read() <= 3 * (2 * LIMIT + 4), plan


@pytest.mark.statement("due")
@pytest.mark.parametrize("names", [None, [MINE, YOURS]], ids=["any name", "some names"])
def test_look_for_due_work_reads_a_handful_of_rows(prepare, names):
    due = prepare("due", [] if names is None else ["names"])
    plan = due.explain(**asked(SHARED, names))
    assert plan.indexes() <= CLAIM_INDEXES
    assert plan.scanned_whole() == []
    assert plan.buffers <= 8 * PAGES_PER_DESCENT, plan


@pytest.mark.statement("queue_depth")
def test_depth_is_counted_no_further_than_its_bound(prepare):
    plan = prepare("queue_depth").explain(queue=SHARED, bound=100)
    assert plan.indexes() <= CLAIM_INDEXES
    assert plan.read() <= 100
    assert plan.buffers <= 3 * PAGES_PER_DESCENT, plan


@pytest.mark.statement("backlog")
def test_backlog_is_counted_no_further_than_its_bound(prepare):
    plan = prepare("backlog").explain(queues=[SHARED, SMALL, "nobody"], bound=1_000)
    assert plan.scanned_whole() == []
    assert plan.indexes() <= {*CLAIM_INDEXES, "cairnq_lean_running_idx"}
    # the bound for each queue that has as many, and once for what runs
    assert plan.read() <= 3 * 1_000 + 3, plan


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        pytest.param("claim", None, marks=pytest.mark.statement("claim")),
        pytest.param("claim_named", [MINE], marks=pytest.mark.statement("claim_named")),
    ],
)
def test_claims_keep_their_plan_over_eight_executions_on_one_connection(backlog, statistics, statement, names):
    with connect(backlog.dsn(statistics), "auto") as connection:
        claim = Prepared(connection, statement)
        plans = [claim.explain(**asked(SHARED, names)) for _ in range(8)]
    for plan in plans:
        assert_walks_in_claim_order(plan)
    assert max(plan.buffers for plan in plans[1:]) <= 1.2 * plans[0].buffers


@pytest.mark.statement("claim", "claim_named")
@pytest.mark.parametrize("names", [None, [MINE, YOURS, FOREIGN], [MINE]], ids=["any", "all names", "one name"])
def test_claim_costs_the_same_beside_other_sdks_indexes(joined, planning, names):
    """The walk may take theirs where it is as good: the same order, the same few rows."""
    with connect(joined, planning) as connection:
        prepared = {"claim": Prepared(connection, "claim"), "claim_named": Prepared(connection, "claim_named")}
        claim = prepared["claim" if names is None else "claim_named"]
        small, large = claim.explain(**asked(SMALL, names)), claim.explain(**asked(SHARED, names))
    assert small.rows == large.rows == LIMIT
    assert large.scanned_whole() == []
    assert large.thrown_away() == 0, large
    assert large.buffers <= 1.2 * small.buffers, large


@pytest.mark.statement("claim", "claim_named")
def test_claim_passes_the_entries_of_what_was_claimed_since_the_last_vacuum_once(backlog, planning):
    """Thousands of claims leave dead entries at the head of the index; a further claim reads them once at most."""
    for statement, names in (("claim", None), ("claim_named", [MINE, YOURS])):
        with connect(backlog.fresh, planning) as connection, connection.transaction(force_rollback=True):
            claim = Prepared(connection, statement)
            first = claim.explain(**asked(SHARED, names))
            bare = psycopg.RawCursor(connection)
            text = Statements("postgres", "public").get(statement)
            bare.execute(text.text.encode(), text.arrange(asked(SHARED, names) | {"limit": 5_000}))
            later = claim.explain(**asked(SHARED, names))
        assert later.rows == LIMIT
        # one page of the table for a dozen dead entries, one of the index for a hundred: 350 to 450 for each walk
        assert later.buffers <= first.buffers + 600 * len(names or [None]), later
