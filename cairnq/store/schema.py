"""The connect-time checks on PostgreSQL, in PROTOCOL's order: which schema, migrations, protocol version."""

from __future__ import annotations

from dataclasses import dataclass

from cairnq.db.session import Executor
from cairnq.db.sqlstate import sqlstate_of
from cairnq.db.statements import Statements, quote_identifier
from cairnq.pure.errors import DatabaseReadOnly, DatabaseUnavailable, SchemaMismatch
from cairnq.pure.models import PROTOCOL_VERSION
from cairnq.store.base import Installation
from cairnq.store.installing import InstallationChecks
from cairnq.store.runner import BoundSession

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


class SchemaChecks(InstallationChecks):
    """One run of the checks over one executor.

    `owns_connection`: the executor was made from a DSN, so we may create a schema. `migrate`: we may change tables.
    """

    def __init__(self, executor: Executor, *, schema: str | None, owns_connection: bool, migrate: bool) -> None:
        super().__init__(executor, migrate=migrate)
        self._schema = schema
        self._owns_connection = owns_connection

    async def run(self) -> Installation:
        finding = await self._find()
        schema = self._decide(finding)
        if finding.in_recovery:
            raise DatabaseReadOnly(
                f"database {finding.database!r} is in recovery (a standby), where no task can be written; "
                "connect to the primary, or add target_session_attrs=read-write to the URL"
            )
        await self._bring_up_to_date(schema, f"schema {schema!r}")
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

    async def _prepare(self, schema: str) -> None:
        if not self._owns_connection:
            return
        async with self._executor.autocommit() as session:
            bound = BoundSession(session, Statements("postgres", None))
            if not (await bound.rows("install/schema_exists", schema=schema))[0][0]:
                await bound.rows("install/schema_create", (), {"schema": quote_identifier(schema)})

    async def _lock_ledger(self, bound: BoundSession, schema: str) -> None:
        await bound.rows("install/begin", search_path=quote_identifier(schema), lock_timeout=LOCK_TIMEOUT)
        await bound.rows("install/ledger_create")
        await bound.rows("install/ledger_lock")

    def _lost_a_race(self, error: Exception, place: str) -> bool:
        if sqlstate_of(error) == "55P03":
            raise DatabaseUnavailable(
                f"a migration waited {LOCK_TIMEOUT} for a lock on the tables in {place} and gave up: "
                "end what holds them (a dump, a long transaction), then start again"
            ) from error
        return sqlstate_of(error) in _LOST_A_RACE
