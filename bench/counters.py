"""What the server does between two moments: statements, WAL, processor time; the harness's own looks left out."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Self

import psutil
import psycopg

from tests.support.cluster import Cluster, name_of

OBSERVER = "bench_observer"
"""A role of the harness's own, so that what it asks is told from what is measured."""

_CALLS = """
select coalesce(sum(s.calls), 0)::bigint, coalesce(sum(s.rows), 0)::bigint,
    coalesce(sum(s.total_exec_time), 0)::float
from pg_stat_statements s
where s.dbid = (select d.oid from pg_database d where d.datname = %s)
    and s.userid <> (select r.oid from pg_roles r where r.rolname = current_user)
"""


@dataclass(frozen=True, slots=True)
class Spent:
    statements: int
    rows: int
    milliseconds: float
    """Of the statements, as the server times them."""
    wal: int
    """Bytes, of the whole server."""
    cpu: float
    """Seconds, of the server's processes, those that have ended too."""

    def since(self, before: Spent) -> Spent:
        return Spent(
            self.statements - before.statements,
            self.rows - before.rows,
            self.milliseconds - before.milliseconds,
            self.wal - before.wal,
            max(0.0, self.cpu - before.cpu),
        )


class Observer:
    """A connection beside the measured ones; use as a context manager."""

    def __init__(self, server: Cluster, dsn: str) -> None:
        self._database = name_of(dsn)
        self._postmaster = server.pid
        self._own = psycopg.connect(as_observer(dsn), autocommit=True, options="-c statement_timeout=60s")
        self._all = psycopg.connect(as_observer(server.dsn()), autocommit=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._own.close()
        self._all.close()

    def ask(self, query: str) -> int:
        """The one number, or truth, of a query in the measured database."""
        found = self._own.execute(query.encode()).fetchone()
        assert found is not None
        return int(found[0])

    def spent(self) -> Spent:
        calls = self._all.execute(_CALLS, [self._database]).fetchone()
        wal = self._all.execute("select (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint").fetchone()
        assert calls is not None
        assert wal is not None
        return Spent(calls[0], calls[1], calls[2], wal[0], self._cpu())

    def _cpu(self) -> float:
        """Counted again where a process ended meanwhile, which is among the living or the ended but not in both."""
        while True:
            ended = self._cpu_of_ended()
            total = ended + self._cpu_of_living()
            if self._cpu_of_ended() == ended:
                return total

    def _cpu_of_ended(self) -> float:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = psutil.Process(self._postmaster).cpu_times()
            return float(times.children_user + times.children_system)
        return 0.0

    def _cpu_of_living(self) -> float:
        total = 0.0
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in psutil.Process(self._postmaster).children():
                with contextlib.suppress(psutil.NoSuchProcess):
                    times = process.cpu_times()
                    total += times.user + times.system
        return total


def as_observer(dsn: str) -> str:
    return dsn.replace("//postgres@", f"//{OBSERVER}@")


def prepare(server: Cluster) -> None:
    """Once a server."""
    with server.connect() as connection:
        connection.execute("create extension if not exists pg_stat_statements")
        connection.execute(f"create role {OBSERVER} superuser login")
