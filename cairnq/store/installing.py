"""The part of the connect-time checks that is the same on every database: the ledger's migrations, the protocol."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence

from cairnq.db.session import Executor
from cairnq.db.statements import Statements, migrations
from cairnq.pure.errors import CairnQError, MigrationsPending, ProtocolVersionMismatch, SchemaMismatch
from cairnq.pure.models import PROTOCOL_VERSION
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

NOT_ON = {"postgres": frozenset[str](), "sqlite": frozenset({"0003_notify.sql"})}
"""Names of that ledger that other SDKs do not know on a kind of database."""

OLDEST_JOINABLE = "0007_purge_status_index.sql"
"""What another SDK's database must have reached before we join it: the ledger of version 0.10.0."""

LEDGER_PREFIX = "lean/"
TABLES = LEDGER_PREFIX + "0001_tables.sql"
PART_WAY_PATIENCE_S = 5.0
PART_WAY_POLL_S = 0.1


class InstallationChecks:
    """`place` says where the tables are, for messages. `migrate`: we may change tables."""

    def __init__(self, executor: Executor, *, migrate: bool) -> None:
        self._executor = executor
        self._dialect = executor.dialect
        self._migrate = migrate

    async def _bring_up_to_date(self, schema: str, place: str) -> None:
        deadline = time.monotonic() + PART_WAY_PATIENCE_S
        while not await self._is_current(schema):
            try:
                await self._apply(schema, place)
            except _PartWay as half:
                if time.monotonic() >= deadline:
                    raise SchemaMismatch(
                        f"the cairnq in {place} stops at migration {half.last!r}, older than any that this "
                        f"program can join ({OLDEST_JOINABLE!r}): upgrade the SDK that made it, and let it connect once"
                    ) from None
            except Exception as error:
                if not self._lost_a_race(error, place) or time.monotonic() >= deadline:
                    raise
            else:
                return
            await asyncio.sleep(PART_WAY_POLL_S)

    async def _prepare(self, schema: str) -> None:
        """Before the migrating transaction."""

    async def _lock_ledger(self, bound: BoundSession, schema: str) -> None:
        """In the migrating transaction: make the ledger if it is not there, and keep every other SDK off it."""
        raise NotImplementedError

    def _lost_a_race(self, error: Exception, place: str) -> bool:  # noqa: ARG002 - for those that explain it
        """Whether another process was faster, so that a second look will find everything done."""
        return False

    async def _is_current(self, schema: str) -> bool:
        ledger = await self._ledger(schema)
        return ledger is not None and not self._missing(ledger) and self._is_joinable(ledger)

    async def _ledger(self, schema: str) -> list[str] | None:
        async with self._executor.autocommit() as session:
            bound = BoundSession(session, Statements(self._dialect, schema))
            if not (await bound.rows("install/ledger_exists", schema=schema))[0][0]:
                return None
            return [row[0] for row in await bound.rows("install/ledger_read")]

    async def _apply(self, schema: str, place: str) -> None:
        """Everything in one transaction, under the ledger's exclusive lock."""
        if not self._migrate:
            ledger = await self._ledger(schema)
            missing = "no cairnq is installed there" if ledger is None else ", ".join(self._missing(ledger))
            raise MigrationsPending(
                f"{place} wants migrations ({missing}) and migrate is off: run `cairnq migrate` as a role that owns it"
            )
        await self._prepare(schema)
        async with self._executor.transaction() as session:
            bound = BoundSession(session, Statements(self._dialect, schema))
            await self._lock_ledger(bound, schema)
            ledger = [row[0] for row in await bound.rows("install/ledger_read")]
            theirs = [name for name in ledger if not name.startswith(LEDGER_PREFIX)]
            if theirs and not self._is_joinable(theirs):
                raise _PartWay(theirs[-1])
            for name, text in migrations(self._dialect):
                joined = bool(theirs) and LEDGER_PREFIX + name == TABLES
                if LEDGER_PREFIX + name in self._missing(ledger) and not joined:
                    await session.execute(text)
            await bound.rows("install/ledger_add", names=self._missing(ledger) + ([] if theirs else self._others()))

    async def _check_protocol(self, schema: str) -> None:
        async with self._executor.autocommit() as session:
            bound = BoundSession(session, Statements(self._dialect, schema))
            found = await bound.rows("meta", key="protocol_version")
        version = str(found[0][0]) if found else ""
        if version.split(".")[0] != str(PROTOCOL_VERSION):
            raise ProtocolVersionMismatch(version, PROTOCOL_VERSION)

    def _missing(self, ledger: Sequence[str]) -> list[str]:
        ours = [LEDGER_PREFIX + name for name, _ in migrations(self._dialect)]
        return [name for name in ours if name not in ledger]

    def _others(self) -> list[str]:
        return [name for name in OTHER_SDKS_LEDGER if name not in NOT_ON[self._dialect]]

    def _is_joinable(self, ledger: Collection[str]) -> bool:
        return set(ledger) >= {name for name in self._others() if name <= OLDEST_JOINABLE}


class _PartWay(CairnQError):
    """Another SDK's ledger stops below what we can join: it may be migrating at this moment."""

    def __init__(self, last: str) -> None:
        super().__init__(last)
        self.last = last
