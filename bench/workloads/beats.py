"""What a beat writes: WAL and HOT share of 5,000 leases, on our schema and on the other SDK's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg

from bench import databases
from bench.figures import Figure
from bench.server import Connection, connect_as_ours
from bench.session import Session
from bench.workloads.cost import without_full_page_images
from cairnq.db.statements import Statements
from tests.support import peers

LEASES = 5_000
WORKER = "worker_01K0000000000000000000000A"
"""As long as real ones: a claim makes its row longer by that."""
BEAT = 500
"""Leases in one statement."""
FILLFACTORS = (30, 35, 40, 45, 50, 60, 70, 100)

_COUNTERS = """
select pg_stat_get_xact_tuples_updated('cairnq_tasks'::regclass)::bigint,
    pg_stat_get_xact_tuples_hot_updated('cairnq_tasks'::regclass)::bigint
"""


@dataclass(frozen=True, slots=True)
class Written:
    """By the first beat after a claim, when pages are at their fullest."""

    wal: float  # bytes a lease
    hot: float  # share of the row versions


def measure(session: Session) -> Iterator[Figure]:
    server = session.server
    with without_full_page_images(server):
        mine = _first_beat(databases.ours(server))
        dsn, version = databases.peers_own(server, peers.NEWEST)
        theirs = _first_beat(dsn)
        detail = f"{mine.wal:.0f} B a lease ({mine.hot:.0%} HOT) beside {theirs.wal:.0f} B ({theirs.hot:.0%})"
        yield Figure(f"WAL of a beat beside the schema of cairnq {version}", mine.wal / theirs.wal, "x", detail)
        for fillfactor in () if session.quick else FILLFACTORS:
            written = _first_beat(databases.ours(server), fillfactor)
            name = f"HOT share of a first beat at fillfactor {fillfactor}"
            yield Figure(name, written.hot * 100, "%", f"{written.wal:.0f} B of WAL a lease", better="higher")


def _first_beat(dsn: str, fillfactor: int | None = None) -> Written:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("alter table cairnq_tasks set (autovacuum_enabled = false)")  # its snapshot keeps versions
        if fillfactor is not None:
            connection.execute(f"alter table cairnq_tasks set (fillfactor = {fillfactor})".encode())
    databases.fill(dsn, LEASES)
    claim, beat = (Statements("postgres", "public").get(name) for name in ("claim", "beat"))
    with connect_as_ours(dsn) as connection:
        wanted = {"queues": ["default"], "worker_id": WORKER, "lease_ms": 3_600_000, "limit": 100}
        ids: list[str] = []
        while len(ids) < LEASES:
            ids += [row[0] for row in connection.execute(claim.text.encode(), claim.arrange(wanted)).fetchall()]
        at = connection.execute("select pg_current_wal_lsn()").fetchone()
        updated = hot = 0
        for start in range(0, LEASES, BEAT):
            some = ids[start : start + BEAT]
            same = {"worker_ids": [WORKER] * BEAT, "attempts": [1] * BEAT, "leases_ms": [3_600_000] * BEAT}
            with connection.transaction():
                before = _counters(connection)
                connection.execute(beat.text.encode(), beat.arrange({"ids": some, **same}))
                after = _counters(connection)
            updated, hot = updated + after[0] - before[0], hot + after[1] - before[1]
        assert at is not None
        wal = connection.execute("select (pg_current_wal_lsn() - $1::pg_lsn)::float", [at[0]]).fetchone()
    assert wal is not None
    if updated != LEASES:
        raise RuntimeError(f"{updated} of {LEASES} leases were renewed in {dsn}")
    return Written(float(wal[0]) / LEASES, hot / LEASES)


def _counters(connection: Connection) -> tuple[int, int]:
    found = connection.execute(_COUNTERS).fetchone()
    assert found is not None
    return int(found[0]), int(found[1])
