"""What a beat asks of the server: one statement for all that a host holds, and one more where a row is missing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from cairnq import PostgresStore
from cairnq.pure.clock import boottime
from cairnq.run.beats import Beater
from cairnq.run.leases import LeaseTable
from tests.support.cluster import Cluster

LEASE_S = 30.0
WORKERS = 4
BATCH = 1000


class Host:
    """Four workers that hold as many tasks as they are given, and the server's count of what was asked."""

    def __init__(self, store: PostgresStore, admin: psycopg.Connection[Any]) -> None:
        self.store = store
        self.admin = admin
        self.tables = [(f"worker_{number}", LeaseTable.private(10_000)) for number in range(WORKERS)]

    async def hold(self, count: int) -> None:
        """In equal parts."""
        for worker_id, table in self.tables:
            left = count // WORKERS
            while left:
                size = min(left, BATCH)
                await self.store.submit_many([{"name": "x"}] * size)
                for task in await self.store.claim(["default"], worker_id, round(LEASE_S * 1000), limit=size):
                    table.hold(task.id, task.attempt, lease_s=LEASE_S, sent=boottime())
                    left -= 1

    def asked(self) -> int:
        """Statements that this database has served, but for those that ask this."""
        (calls,) = self.admin.execute(
            """select coalesce(sum(calls), 0)::int from pg_stat_statements
               where dbid = (select oid from pg_database where datname = current_database())
               and query not like '%pg_stat_statements%'"""
        ).fetchone() or (0,)
        return int(calls)


@pytest.fixture
async def host(store: PostgresStore, server: Cluster, database: str) -> AsyncIterator[Host]:
    if not server.binaries.has_library("pg_stat_statements"):
        pytest.skip("this server cannot count statements")
    with server.connect(database.rsplit("/", 1)[1]) as admin:
        admin.execute("create extension pg_stat_statements")
        yield Host(store, admin)


@pytest.mark.parametrize("held", [500, 10_000])
async def test_all_that_a_host_holds_is_renewed_in_one_statement(host: Host, held: int) -> None:
    await host.hold(held)
    before = host.asked()
    report = await Beater(host.store).beat(host.tables)
    assert (report.renewed, report.lost, report.unsure) == (held, (), frozenset())
    assert host.asked() - before == 1


async def test_what_did_not_come_back_is_looked_for_in_one_more_whoever_held_it(host: Host) -> None:
    await host.hold(40)
    taken = [table.entries()[0].task_id for _, table in host.tables]
    gone = [table.entries()[1].task_id for _, table in host.tables]
    host.admin.execute("update cairnq_tasks set worker_id = 'worker_OTHER', attempt = 2 where id = any (%s)", [taken])
    host.admin.execute("delete from cairnq_tasks where id = any (%s)", [gone])
    before = host.asked()
    report = await Beater(host.store).beat(host.tables)
    assert host.asked() - before == 2
    assert report.renewed == 40 - 2 * WORKERS
    assert sorted(held.task_id for held in report.lost) == sorted([*taken, *gone])
    assert report.changed == {worker_id for worker_id, _ in host.tables}
