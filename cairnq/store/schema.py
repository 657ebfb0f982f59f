"""The connect-time checks, in PROTOCOL's order: which schema, migrations under the ledger's lock, protocol version."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from cairnq.db.session import Executor
from cairnq.db.sqlstate import sqlstate_of
from cairnq.db.statements import Statements, migrations, quote_identifier
from cairnq.pure.errors import (
    CairnQError,
    DatabaseReadOnly,
    DatabaseUnavailable,
    MigrationsPending,
    ProtocolVersionMismatch,
    SchemaMismatch,
)
from cairnq.pure.models import PROTOCOL_VERSION
from cairnq.store.base import Installation
from cairnq.store.runner import BoundSession

OTHER_SDKS_LEDGER = (
    "0001_init.sql",
    "0002_purge_index.sql",
    "0003_notify.sql",
    "0004_lease_index.sql",
    "0005_clear_terminal_lease.sql",
    "0006_claim_name_index.sql",
    "0007_purge_status_index.sql",
    "0008_claim_due_index.sql",
    "0009_purge_queue_index.sql",
    "0010_drop_status_index.sql",
)
"""What a database that we make carries in its ledger, so that no other SDK adds its indexes and trigger beside ours."""

JOINABLE = frozenset(OTHER_SDKS_LEDGER[:7])
"""What another SDK's database must carry before we join it: the ledger of version 0.10.0."""

LEDGER_PREFIX = "lean/"
TABLES = LEDGER_PREFIX + "0001_tables.sql"
PART_WAY_PATIENCE_S = 5.0
PART_WAY_POLL_S = 0.1
LOCK_TIMEOUT = "5s"

# Two cold starts may both find nothing and both create it: 23505 and 42P07 (and 42P06 for the schema) say so.
_LOST_A_RACE = frozenset({"23505", "42P06", "42P07", "40P01"})


@dataclass(frozen=True, slots=True)
class Finding:
    """What one look at the database told."""

    current_schema: str | None
    holders: tuple[str, ...]
    in_recovery: bool
    database: str
    role: str


class SchemaChecks:
    """One run of the checks over one executor.

    `owns_connection`: the executor was made from a DSN, so we may create a schema. `migrate`: we may change tables.
    """

    def __init__(self, executor: Executor, *, schema: str | None, owns_connection: bool, migrate: bool) -> None:
        self._executor = executor
        self._schema = schema
        self._owns_connection = owns_connection
        self._migrate = migrate

    async def run(self) -> Installation:
        finding = await self._find()
        schema = self._decide(finding)
        if finding.in_recovery:
            raise DatabaseReadOnly(
                f"database {finding.database!r} is in recovery (a standby), where no task can be written; "
                "connect to the primary, or add target_session_attrs=read-write to the URL"
            )
        await self._bring_up_to_date(schema)
        await self._check_protocol(schema)
        return Installation(schema, PROTOCOL_VERSION)

    async def _find(self) -> Finding:
        async with self._executor.autocommit() as session:
            found = (await BoundSession(session, Statements("postgres", None)).rows("install/find"))[0]
        return Finding(found[0], tuple(found[1]), found[2], found[3], found[4])

    def _decide(self, finding: Finding) -> str:
        here, wanted = finding.current_schema, self._schema
        if wanted is not None:
            if not self._owns_connection and here is not None and here != wanted:
                raise SchemaMismatch(
                    f"schema {wanted!r} is configured, but the connection given resolves to {here!r}; "
                    f"set its search_path to {wanted!r}, or configure schema={here!r}"
                )
            return wanted
        if here is None:
            # No conclusion about other schemas; say what stands in the way of this one.
            raise SchemaMismatch(
                f"role {finding.role!r} has no current schema in database {finding.database!r} "
                "(its search_path names none that exists); configure schema=, or set the role's search_path"
            )
        others = [name for name in finding.holders if name != here]
        if here not in finding.holders and others:
            raise SchemaMismatch(
                f"this connection resolves to schema {here!r}, which holds no cairnq, but schema "
                f"{', '.join(map(repr, others))} of the same database does; tasks would never cross. "
                f"Point at the same one (schema={others[0]!r}), or configure schema={here!r} to confirm a separate one"
            )
        return here

    async def _bring_up_to_date(self, schema: str) -> None:
        deadline = time.monotonic() + PART_WAY_PATIENCE_S
        while not await self._is_current(schema):
            try:
                await self._apply(schema)
            except _PartWay as half:
                if time.monotonic() >= deadline:
                    raise SchemaMismatch(
                        f"the cairnq in schema {schema!r} stops at migration {half.last!r}, older than any that this "
                        f"program can join ({OTHER_SDKS_LEDGER[6]!r}): upgrade the SDK that made it, and let it "
                        "connect once"
                    ) from None
            except Exception as error:
                if sqlstate_of(error) == "55P03":
                    raise DatabaseUnavailable(
                        f"a migration waited {LOCK_TIMEOUT} for a lock on the tables in schema {schema!r} and gave up: "
                        "end what holds them (a dump, a long transaction), then start again"
                    ) from error
                if sqlstate_of(error) not in _LOST_A_RACE or time.monotonic() >= deadline:
                    raise
            else:
                return
            await asyncio.sleep(PART_WAY_POLL_S)

    async def _is_current(self, schema: str) -> bool:
        ledger = await self._ledger(schema)
        return ledger is not None and not _missing(ledger) and set(ledger) >= JOINABLE

    async def _ledger(self, schema: str) -> list[str] | None:
        async with self._executor.autocommit() as session:
            bound = BoundSession(session, Statements("postgres", schema))
            if not (await bound.rows("install/ledger_exists", schema=schema))[0][0]:
                return None
            return [row[0] for row in await bound.rows("install/ledger_read")]

    async def _missing_text(self, schema: str) -> str:
        ledger = await self._ledger(schema)
        return "no cairnq is installed there" if ledger is None else ", ".join(_missing(ledger))

    async def _apply(self, schema: str) -> None:
        """Everything in one transaction, under the ledger's exclusive lock."""
        if not self._migrate:
            raise MigrationsPending(
                f"schema {schema!r} wants migrations ({await self._missing_text(schema)}) and migrate is off: "
                "connect once with a role that owns the schema"
            )
        if self._owns_connection:
            await self._create_schema(schema)
        async with self._executor.transaction() as session:
            bound = BoundSession(session, Statements("postgres", schema))
            await bound.rows("install/begin", search_path=quote_identifier(schema), lock_timeout=LOCK_TIMEOUT)
            await bound.rows("install/ledger_create")
            await bound.rows("install/ledger_lock")
            ledger = [row[0] for row in await bound.rows("install/ledger_read")]
            theirs = [name for name in ledger if not name.startswith(LEDGER_PREFIX)]
            if theirs and not JOINABLE.issubset(theirs):
                raise _PartWay(theirs[-1])
            for name, text in migrations("postgres"):
                joined = bool(theirs) and LEDGER_PREFIX + name == TABLES
                if LEDGER_PREFIX + name in _missing(ledger) and not joined:
                    await session.execute(text)
            names = _missing(ledger) + ([] if theirs else list(OTHER_SDKS_LEDGER))
            await bound.rows("install/ledger_add", names=names)

    async def _create_schema(self, schema: str) -> None:
        async with self._executor.autocommit() as session:
            bound = BoundSession(session, Statements("postgres", None))
            if not (await bound.rows("install/schema_exists", schema=schema))[0][0]:
                await bound.rows("install/schema_create", (), {"schema": quote_identifier(schema)})

    async def _check_protocol(self, schema: str) -> None:
        async with self._executor.autocommit() as session:
            bound = BoundSession(session, Statements("postgres", schema))
            found = await bound.rows("meta", key="protocol_version")
        version = str(found[0][0]) if found else ""
        if version.split(".")[0] != str(PROTOCOL_VERSION):
            raise ProtocolVersionMismatch(version, PROTOCOL_VERSION)


class _PartWay(CairnQError):
    """Another SDK's ledger stops below what we can join: it may be migrating at this moment."""

    def __init__(self, last: str) -> None:
        super().__init__(last)
        self.last = last


def _missing(ledger: Sequence[str]) -> list[str]:
    ours = [LEDGER_PREFIX + name for name, _ in migrations("postgres")]
    return [name for name in ours if name not in ledger]
