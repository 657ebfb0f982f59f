"""The statements of the keeper's upkeep on a quarter of a million tasks."""

from __future__ import annotations

import psycopg
import pytest

from cairnq.store.postgres import PostgresStore
from tests.sql.backlog import CROWD, ELSEWHERE, RUNNING, SHARED

BOUND = 1000
ALL_RUNNING = RUNNING + 10 * CROWD


@pytest.mark.statement("backlog")
def test_the_backlog_is_counted_by_its_bound_whatever_waits(prepare):
    plan = prepare("backlog").explain(queues=[SHARED, ELSEWHERE], bound=BOUND)
    assert plan.scanned_whole() == [], plan
    assert plan.read() <= 3 * BOUND, plan


@pytest.mark.statement("outlook")
def test_leases_that_are_over_are_looked_for_among_what_runs_alone(prepare):
    plan = prepare("outlook", ["expired"]).explain(queues=[ELSEWHERE], bound=BOUND)
    assert plan.scanned_whole() == [], plan
    assert plan.read() <= ALL_RUNNING + BOUND + 8, plan


@pytest.mark.statement("take_duty")
async def test_a_duty_is_a_row_that_other_sdks_do_not_mind(store: PostgresStore, database: str):
    assert await store.take_duty("retention", "host_a", 60_000)
    with psycopg.connect(database) as connection:
        found = connection.execute("select key, value from cairnq_meta where key like 'duty %'").fetchall()
    assert [(key, value.split()[1]) for key, value in found] == [("duty retention", "host_a")]


@pytest.mark.statement("vacuum")
async def test_dead_rows_are_removed_by_vacuum(store: PostgresStore, database: str, monkeypatch: pytest.MonkeyPatch):
    with psycopg.connect(database, autocommit=True) as connection:
        for _ in range(20):
            await store.cancel((await store.submit("a")).id)
        connection.execute("delete from cairnq_tasks")
        monkeypatch.setattr("cairnq.store.postgres.VACUUM_LEAST_DEAD", 0)
        assert await store.vacuum_if_due()
        pages = connection.execute("select relpages from pg_class where relname = 'cairnq_tasks'").fetchone()
        dead = connection.execute("select last_vacuum from pg_stat_all_tables where relname = 'cairnq_tasks'")
        while dead.fetchone() == (None,):  # statistics arrive a moment later
            dead = connection.execute("select last_vacuum from pg_stat_all_tables where relname = 'cairnq_tasks'")
    assert pages is not None
    assert pages[0] > 0  # not truncated
