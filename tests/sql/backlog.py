"""A database as it stands after weeks of use: what the plan tests read. Built once for each server."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from cairnq.store.postgres import PostgresStore
from tests.support.cluster import Cluster

SHARED, SMALL, ELSEWHERE, LADDER, STAIRS = "shared", "small", "elsewhere", "ladder", "stairs"
"""Queues: all kinds of work mixed; the same with little waiting; finished work; due work at each of many priorities;
the same in backoff, with a little due work below."""

QUIET, HAUNTED = "quiet", "haunted"
"""Queues: a little due work; the same behind `SUSPECTS` suspects."""

MINE, YOURS, FOREIGN = "mine", "yours", "foreign"
"""Names: the first two have handlers here, the third belongs to another program and stands ahead of them."""

BUSY = "worker_busy"
"""Holds `RUNNING` tasks."""

WAITING, BACKOFF, AHEAD, RUNNING = 160_000, 20_000, 10_000, 10_000
FINISHED = {"succeeded": 45_000, "failed": 4_500, "canceled": 500}
SMALL_WAITING, SMALL_BACKOFF, SMALL_AHEAD = 1_000, 100, 50
PRIORITIES = 500
SUSPECTS = 2_000
CROWD = 50
"""Other workers, each with ten tasks running."""

_RUNNING_BLOCK = 101

_ROWS = """
insert into cairnq_tasks (id, name, queue, status, payload, metadata, max_attempts, priority, attempt, worker_id,
    lease_until_ms, run_at_ms, root_id, parent_id, correlation_id, created_at_ms, updated_at_ms, completed_at_ms,
    result, error)
select made.id, made.name, made.queue, made.status,
    jsonb_build_object('number', made.n, 'text', repeat('x', 60)), '{}', 3, made.priority, made.attempt, made.worker_id,
    case when made.status = 'running' then clock.now_ms + 86400000 end,
    clock.now_ms + made.due_in_ms,
    coalesce(made.root_id, made.id), made.root_id, made.correlation_id, clock.now_ms, clock.now_ms,
    case when made.status in ('succeeded', 'failed', 'canceled') then clock.now_ms - 1000 end,
    case when made.status = 'succeeded' then '{"answer": 42}'::jsonb end,
    case when made.status = 'failed' then '{"type": "X", "code": "x", "message": "m", "retryable": false}'::jsonb end
from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as now_ms) clock
cross join (
    select 'task_' || lpad(to_hex(%(stamp)s::bigint), 8, '0') || lpad(n::text, 18, '0') as id, n,
        case when %(name)s = 'either' then case when n %% 2 = 0 then 'mine' else 'yours' end else %(name)s end as name,
        %(queue)s::text as queue, %(status)s::text as status,
        case when %(priority)s::text = 'each' then n %% %(priorities)s else %(priority)s::bigint end::integer
            as priority,
        case when %(status)s = 'queued' then 0 else 1 end as attempt,
        %(worker)s::text || case when %(crowd)s then '_' || (n %% 50)::text else '' end as worker_id,
        case when %(due)s then -3600000 + n else 3600000 + n end as due_in_ms,
        case when n %% 100 = 7 then
            'task_' || lpad(to_hex(%(stamp)s::bigint), 8, '0') || lpad((n - 7)::text, 18, '0')
        end as root_id,
        case when n %% 500 = 9 then 'order-' || (n / 5000)::text end as correlation_id
    from generate_series(1, %(count)s::integer) n
) made
"""


_MARK = """
update cairnq_tasks set error = '{"code": "worker_crashed", "message": "it", "details": {"signal": 9, "suspect": 2}}'
where queue = %(queue)s
"""

_OTHER_SDKS_INDEXES = """
create index old_claim_idx on cairnq_tasks (queue, status, priority desc, created_at_ms);
create index old_claim_name_idx on cairnq_tasks (queue, status, name, priority desc, created_at_ms);
create index new_claim_idx on cairnq_tasks (queue, status, priority desc, run_at_ms, id);
create index new_claim_name_idx on cairnq_tasks (queue, status, name, priority desc, run_at_ms, id);
create index completed_idx on cairnq_tasks (completed_at_ms);
create index correlation_idx on cairnq_tasks (correlation_id);
create index lease_idx on cairnq_tasks (lease_until_ms) where status = 'running' and lease_until_ms is not null;
create index name_idx on cairnq_tasks (name);
create index queue_completed_idx on cairnq_tasks (queue, completed_at_ms)
    where status in ('succeeded', 'failed', 'canceled');
create index root_idx on cairnq_tasks (root_id);
create index status_completed_idx on cairnq_tasks (status, completed_at_ms);
create index status_idx on cairnq_tasks (status);
"""
"""Those of releases 0.10.0 and 0.15.1 together."""


def task_ids(block: int, count: int) -> list[str]:
    """The oldest `count` ids of one block, in order."""
    return [f"task_{block:08x}{number:018d}" for number in range(1, count + 1)]


def running(count: int) -> list[str]:
    """Tasks that `BUSY` holds, in their first attempt."""
    return task_ids(_RUNNING_BLOCK, count)


@dataclass(slots=True)
class Loader:
    """Inserts blocks of tasks; each block's ids are newer than those before it."""

    connection: psycopg.Connection[tuple[Any, ...]]
    stamp: int = 0

    def add(
        self,
        count: int,
        *,
        queue: str,
        name: str = "either",
        status: str = "queued",
        priority: str = "0",
        worker: str | None = None,
        crowd: bool = False,
        due: bool = True,
    ) -> None:
        self.stamp += 1
        values = {
            "count": count,
            "queue": queue,
            "name": name,
            "status": status,
            "priority": priority,
            "worker": worker,
            "crowd": crowd,
            "due": due,
            "stamp": self.stamp,
            "priorities": PRIORITIES,
        }
        self.connection.execute(_ROWS, values)


@dataclass(frozen=True, slots=True)
class Backlog:
    """Databases with the same rows: one knows them, one was looked at while nothing ran, one never (restored)."""

    fresh: str
    idle: str
    none: str

    def dsn(self, statistics: str) -> str:
        return {"fresh": self.fresh, "idle": self.idle, "none": self.none}[statistics]


def build(server: Cluster) -> Backlog:
    """Takes seconds. `idle` keeps statistics that say that no task has ever been running."""
    idle = server.create_database()
    asyncio.run(_install(server.dsn(idle)))
    with server.connect(idle) as connection:
        _load_what_waits_and_what_ended(connection)
    none = server.create_database(template=idle)
    with server.connect(idle) as connection:
        connection.execute("vacuum (analyze) cairnq_tasks, cairnq_task_keys")
    fresh = server.create_database(template=idle)
    for name in (idle, fresh, none):
        with server.connect(name) as connection:
            _load_what_runs(connection)
    with server.connect(fresh) as connection:
        connection.execute("vacuum (analyze) cairnq_tasks, cairnq_task_keys")
    return Backlog(server.dsn(fresh), server.dsn(idle), server.dsn(none))


def join(server: Cluster, dsn: str) -> str:
    """The DSN of a copy with other SDKs' indexes beside ours, as on a database that one of them made."""
    name = server.create_database(template=str(conninfo_to_dict(dsn)["dbname"]))
    with server.connect(name) as connection:
        connection.execute(_OTHER_SDKS_INDEXES)
    return server.dsn(name)


async def _install(dsn: str) -> None:
    store = PostgresStore(dsn, max_size=1)
    await store.connect()
    await store.close()


def _load_what_waits_and_what_ended(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    for table in ("cairnq_tasks", "cairnq_task_keys"):
        connection.execute(f"alter table {table} set (autovacuum_enabled = false)".encode())
    connection.execute("set session_replication_role = replica")  # nobody listens: no trigger per row
    loader = Loader(connection)
    for status, count in FINISHED.items():
        loader.add(count, queue=ELSEWHERE, status=status, worker="worker_past", crowd=True)
    loader.add(WAITING, queue=SHARED)
    loader.add(BACKOFF, queue=SHARED, priority="100", due=False)
    loader.add(AHEAD, queue=SHARED, name=FOREIGN, priority="10")
    loader.add(SMALL_WAITING, queue=SMALL)
    loader.add(SMALL_BACKOFF, queue=SMALL, priority="100", due=False)
    loader.add(SMALL_AHEAD, queue=SMALL, name=FOREIGN, priority="10")
    loader.add(2 * PRIORITIES, queue=LADDER, priority="each")
    loader.add(20 * PRIORITIES, queue=STAIRS, priority="each", due=False)
    loader.add(100, queue=STAIRS, priority="-1")
    loader.add(SUSPECTS, queue=HAUNTED)
    connection.execute(_MARK, {"queue": HAUNTED})
    for queue in (QUIET, HAUNTED):
        loader.add(100, queue=queue)
    connection.execute(
        "insert into cairnq_task_keys select 'key-' || t.id, t.id, 0, 0 from cairnq_tasks t where t.status <> 'queued'"
    )


def _load_what_runs(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    connection.execute("set session_replication_role = replica")
    loader = Loader(connection, stamp=_RUNNING_BLOCK - 1)
    loader.add(RUNNING, queue=SHARED, status="running", worker=BUSY)
    loader.add(10 * CROWD, queue=SHARED, status="running", worker="worker_other", crowd=True)
