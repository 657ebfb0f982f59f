"""What cleans up reads its own index: recovery and crash settlement what runs, purge what ended."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from cairnq.db.statements import Statements
from tests.sql.backlog import CROWD, ELSEWHERE, FINISHED, RUNNING, Backlog
from tests.sql.plans import Connection, Prepared, connect

RUNNING_INDEX, FINISHED_INDEX, PRIMARY = "cairnq_lean_running_idx", "cairnq_lean_finished_idx", "cairnq_tasks_pkey"
ALL_RUNNING = RUNNING + 10 * CROWD
FAIL_WORKER = {"error": "{}", "backoff_ms": 1000, "backoff_max_ms": 30_000}
NO_ID_IS_NEWER = "task_Z"


def purging(*statuses: str, limit: int = 100, **filters: Any) -> dict[str, Any]:
    return {"statuses": list(statuses), "cutoff_ms": 2**60, "before_id": NO_ID_IS_NEWER, "limit": limit, **filters}


@pytest.mark.statement("fail_worker")
def test_crash_settlement_reads_what_the_dead_worker_held(prepare):
    plan = prepare("fail_worker").explain(worker_id="worker_other_1", **FAIL_WORKER)
    assert plan.rows == 10
    assert plan.indexes() == {RUNNING_INDEX, PRIMARY}
    assert plan.read() <= 3 * 10, plan  # found, locked, written


@pytest.mark.statement("held_by")
def test_reading_what_a_worker_holds_reads_that_alone(prepare):
    plan = prepare("held_by").explain(worker_id="worker_other_1")
    assert plan.rows == 10
    assert plan.indexes() == {RUNNING_INDEX}
    assert plan.read() == 10, plan


@pytest.mark.statement("fail_worker", "held_by")
def test_both_keep_their_plan_over_eight_executions(backlog: Backlog, statistics: str):
    with connect(backlog.dsn(statistics), "auto") as connection:
        fail_worker, held_by = Prepared(connection, "fail_worker"), Prepared(connection, "held_by")
        for _ in range(8):
            assert fail_worker.explain(worker_id="worker_other_1", **FAIL_WORKER).read() <= 3 * 10
            assert held_by.explain(worker_id="worker_other_1").read() == 10


@pytest.mark.statement("recover")
def test_recovery_reads_what_runs_and_nothing_else(prepare):
    plan = prepare("recover").explain(error="{}", limit=1000)
    assert plan.rows == 0
    assert plan.scanned_whole() == []
    assert plan.indexes() <= {RUNNING_INDEX, PRIMARY}
    assert plan.read() <= ALL_RUNNING, plan


@pytest.mark.statement("recover")
def test_recovery_of_lapsed_leases_finds_each_by_id(connection: Connection):
    with connection.transaction(force_rollback=True):
        connection.execute("update cairnq_tasks set lease_until_ms = 1 where worker_id like 'worker_other%'")
        plan = Prepared(connection, "recover").explain(error="{}", limit=1000)
    assert plan.rows == 10 * CROWD
    assert plan.scanned_whole() == []
    assert plan.indexes() <= {RUNNING_INDEX, PRIMARY}
    assert plan.read() <= ALL_RUNNING + 2 * 10 * CROWD, plan


@pytest.mark.statement("purge")
@pytest.mark.parametrize("statistics", ["fresh", "idle"])
@pytest.mark.parametrize("filters", [{}, {"queue": ELSEWHERE}], ids=["all", "of a queue"])
@pytest.mark.parametrize("statuses", [("succeeded",), ("canceled",), tuple(FINISHED)], ids=["common", "rare", "any"])
def test_purge_reads_what_ended(prepare, statuses, filters):
    plan = prepare("purge", filters).explain(**purging(*statuses, **filters))
    assert plan.rows == 100
    assert plan.scanned_whole() == []
    assert plan.indexes() <= {FINISHED_INDEX, PRIMARY}
    assert plan.sorts() == []
    assert plan.read() <= 2 * 100, plan


@pytest.mark.statement("purge")
def test_purge_stops_at_the_newest_id_that_can_be_old_enough(prepare):
    """Nothing finished so long ago: without a bound in ids the whole index would be read to learn it."""
    plan = prepare("purge").explain(**(purging(*FINISHED) | {"cutoff_ms": 1, "before_id": "task_0"}))
    assert plan.rows == 0
    assert plan.read() == 0, plan


@pytest.mark.statement("purge")
def test_purge_finds_the_keys_of_purged_tasks_by_index(connection: Connection):
    """The cascade's own statement cannot be explained; its scans are counted by the server."""
    with connection.transaction(force_rollback=True):
        statement = Statements("postgres", "public").get("purge")
        cursor = psycopg.RawCursor(connection)
        before = _scans(connection)
        cursor.execute(statement.text.encode(), statement.arrange(purging("failed")))
        after = _scans(connection)
    # one look for each purged task; a scan of the whole table never
    assert (after[0] - before[0], after[1] - before[1]) == (0, 100)


def _scans(connection: Connection) -> tuple[int, int]:
    """Scans of the whole table of keys, and of its index by task, so far in this transaction."""
    found = connection.execute(
        "select pg_stat_get_xact_numscans('cairnq_task_keys'::regclass),"
        " pg_stat_get_xact_numscans('cairnq_lean_keys_task_idx'::regclass)"
    ).fetchone()
    assert found is not None
    return int(found[0]), int(found[1])
