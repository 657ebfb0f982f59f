"""A look at the database that changes nothing: what `check` and `doctor` judge, and what `migrate` compares."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psycopg

from cairnq.db.connection import PsycopgSession
from cairnq.db.pool import PsycopgExecutor
from cairnq.db.sqlstate import translate
from cairnq.db.statements import Statements
from cairnq.pure.errors import CairnQError
from cairnq.store.installing import LEDGER_PREFIX, OTHER_SDKS_LEDGER
from cairnq.store.runner import BoundSession
from cairnq_supervisor.pure.settings import Settings

_OLD_SNAPSHOT_S = 300
"""Seconds: the work of vacuum that a younger snapshot holds back is not worth a word."""


@dataclass(frozen=True, slots=True)
class Rights:
    """None: there is no such schema, or there are no tables."""

    create_schema: bool
    use: bool | None
    create: bool | None
    owns: bool | None
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Holder:
    """Something whose snapshot keeps dead rows from being removed. `age_s` None: it has no age of its own."""

    kind: str
    who: str
    age_s: int | None


@dataclass(frozen=True, slots=True)
class HotTable:
    """`cairnq_tasks`, as the statistics have it. Ages are seconds."""

    live: int
    dead: int
    vacuumed_ago_s: int | None
    autovacuum: bool
    wakes: bool
    oldest_finished_s: float | None


@dataclass(frozen=True, slots=True)
class Survey:
    """`schema` is where the tables are, or would be made. `clock_ms` is the database's, epoch milliseconds."""

    database: str
    role: str
    schema: str | None
    in_recovery: bool
    version: int
    most_connections: int
    reserved_connections: int
    open_connections: int
    pooled: bool
    clock_ms: int
    ledger: tuple[str, ...]
    rights: Rights
    holders: tuple[Holder, ...]
    table: HotTable | None

    @property
    def ours(self) -> tuple[str, ...]:
        return tuple(name for name in self.ledger if name.startswith(LEDGER_PREFIX))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Migrations of an SDK that is newer than what this program knows."""
        return tuple(name for name in self.ledger if name not in OTHER_SDKS_LEDGER and name not in self.ours)


async def survey(settings: Settings) -> Survey:
    """Raises the `CairnQError` that says why the database cannot be looked at."""
    async with _session(settings) as (connection, bound):
        current, _, in_recovery, database, role = (await bound(None).rows("install/find"))[0]
        schema = settings.schema or current
        at = bound(schema)
        version, most, reserved, used, backend, clock_ms = (await at.rows("survey/server"))[0]
        rights = Rights(*(await at.rows("survey/rights", schema=schema))[0])
        readable = rights.owns is not None and rights.use and not any("select" in what for what in rights.missing)
        return Survey(
            database=database,
            role=role,
            schema=schema,
            in_recovery=in_recovery,
            version=version,
            most_connections=most,
            reserved_connections=reserved,
            open_connections=used,
            # A pooler hands out a key of its own; the server's word is another.
            pooled=backend != connection.info.backend_pid,
            clock_ms=clock_ms,
            ledger=tuple(row[0] for row in await at.rows("install/ledger_read")) if readable else (),
            rights=rights,
            holders=tuple(Holder(*row) for row in await at.rows("survey/snapshots", least_s=_OLD_SNAPSHOT_S)),
            table=await _hot_table(at, schema) if readable else None,
        )


async def _hot_table(at: BoundSession, schema: str | None) -> HotTable | None:
    found = await at.rows("survey/tables", schema=schema)
    if not found:
        return None
    ended_ms, now_ms = (await at.rows("survey/oldest_finished"))[0]
    live, dead, vacuumed_ago_s, autovacuum, wakes = found[0]
    age = None if ended_ms is None else (now_ms - ended_ms) / 1000
    return HotTable(live, dead, vacuumed_ago_s, autovacuum, wakes, age)


class _Binder:
    """Binds the statements of one schema to the session."""

    def __init__(self, connection: psycopg.AsyncConnection[object]) -> None:
        self._session = PsycopgSession(connection)

    def __call__(self, schema: str | None) -> BoundSession:
        return BoundSession(self._session, Statements("postgres", schema))


@asynccontextmanager
async def _session(settings: Settings) -> AsyncIterator[tuple[psycopg.AsyncConnection[object], _Binder]]:
    # Nothing is prepared, so that a pooler in the way is a finding and not a failure.
    executor = PsycopgExecutor(settings.database, min_size=0, max_size=1, pooled=True)
    try:
        connection = await executor.connect()
        try:
            yield connection, _Binder(connection)
        finally:
            await connection.close()
    except CairnQError:
        raise
    except psycopg.Error as error:
        raise translate(error) from error
