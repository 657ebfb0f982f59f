"""What a task costs the server: WAL and buffers of the same batched claim and settle, on our schema and on theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bench import databases
from bench.figures import Figure
from bench.server import connect_as_ours
from bench.session import Session
from cairnq.db.statements import Statements
from tests.support import peers
from tests.support.cluster import Cluster

TASKS = 10_000
BATCH = 100
WORKER = "worker_01K0000000000000000000000A"

_SPENT = """
select sum(s.wal_bytes)::float, sum(s.shared_blks_hit + s.shared_blks_read)::float
from pg_stat_statements s
where s.dbid = (select oid from pg_database where datname = current_database()) and s.query like '%cairnq_tasks%'
    and s.calls > 1
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Per task."""

    wal: float
    buffers: float


@contextmanager
def without_full_page_images(server: Cluster) -> Iterator[None]:
    """What they add to the WAL depends on checkpoints, not on the schema."""
    with server.connect() as admin:
        admin.execute("alter system set full_page_writes = off")
        admin.execute("select pg_reload_conf()")
        try:
            yield
        finally:
            admin.execute("alter system reset full_page_writes")
            admin.execute("select pg_reload_conf()")


def measure(session: Session) -> Iterator[Figure]:
    with without_full_page_images(session.server):
        yield from _compare(session.server, [peers.PINNED] if session.quick else [peers.PINNED, peers.NEWEST])


def _compare(server: Cluster, releases: Sequence[str]) -> Iterator[Figure]:
    mine = _cost(databases.ours(server))
    for release in releases:
        must = 0.5 if release == peers.PINNED else None
        dsn, version = databases.peers_own(server, release)
        theirs = _cost(dsn)
        on = f"claim and settle by {BATCH}, {TASKS:,} tasks, beside the schema of cairnq {version}"
        detail = f"{mine.wal:,.0f} B a task beside {theirs.wal:,.0f} B, without full-page images"
        yield Figure(f"WAL: {on}", mine.wal / theirs.wal, "x", detail, target=must)
        detail = f"{mine.buffers:.1f} buffers a task beside {theirs.buffers:.1f}"
        yield Figure(f"buffers: {on}", mine.buffers / theirs.buffers, "x", detail, target=must)


def _cost(dsn: str) -> Cost:
    databases.fill(dsn, TASKS)
    claim, settle = (Statements("postgres", "public").get(name) for name in ("claim", "settle"))
    done = 0
    with connect_as_ours(dsn) as connection:
        connection.execute("select pg_stat_statements_reset()")
        while True:
            wanted = {"queues": ["default"], "worker_id": WORKER, "lease_ms": 30_000, "limit": BATCH}
            ids = [row[0] for row in connection.execute(claim.text.encode(), claim.arrange(wanted)).fetchall()]
            if not ids:
                break
            count = len(ids)
            outcome = {"outcomes": ["complete"] * count, "bodies": ['{"ok": true}'] * count, "delays_ms": [0] * count}
            settled = settle.arrange({"worker_id": WORKER, "ids": ids, "attempts": [1] * count, **outcome})
            done += len(connection.execute(settle.text.encode(), settled).fetchall())
        spent = connection.execute(_SPENT).fetchone()
    assert spent is not None
    if done != TASKS:
        raise RuntimeError(f"{done} of {TASKS} tasks were settled in {dsn}")
    return Cost(spent[0] / done, spent[1] / done)
