"""The store on PostgreSQL: its parts put together over one executor."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

import psycopg

from cairnq.db.foreign import ForeignExecutor
from cairnq.db.listen import Listener
from cairnq.db.pool import PsycopgExecutor
from cairnq.db.session import PgExecutor, Row
from cairnq.db.sqlstate import translate
from cairnq.db.statements import Statements
from cairnq.pure import arguments
from cairnq.pure.errors import InvalidArgument, StoreClosed
from cairnq.store.base import Installation
from cairnq.store.changing import Changing
from cairnq.store.exchanging import Exchanging
from cairnq.store.reading import Reading
from cairnq.store.runner import raise_translated
from cairnq.store.schema import SchemaChecks
from cairnq.store.submitting import Submitting
from cairnq.store.upkeep import Upkeep

Stop = Callable[[], Awaitable[None]]

VACUUM_LEAST_DEAD = 10_000
VACUUM_DEAD_SHARE = 0.2
VACUUM_INTERVAL_S = 30


class PostgresStore(Submitting, Exchanging, Changing, Reading, Upkeep):
    """All of `TaskStore` on PostgreSQL.

    `source`: a DSN, or a `PgExecutor` over the caller's own driver (never closed by us).
    `schema`: where the tables are; made if absent (with a DSN), and checked. None: the connection's current schema.
    `min_size`, `max_size`: bounds of the connection pool, which is made at the first use in a process.
    `listen_database`: a direct DSN for LISTEN; giving it says that `source` goes through a transaction pooler.
    `installation`: what an earlier `connect()` found; the checks are then skipped.
    `migrate=False`: check only, for a role without the right to change tables.
    """

    def __init__(
        self,
        source: str | PgExecutor,
        *,
        schema: str | None = None,
        min_size: int = 1,
        max_size: int = 10,
        listen_database: str | None = None,
        installation: Installation | None = None,
        migrate: bool = True,
    ) -> None:
        arguments.optional_text(schema, "schema", max_bytes=63)
        self._source = source
        self._schema = schema
        self._migrate = migrate
        self._listen_database = listen_database
        self._listen_executor: PsycopgExecutor | None = None
        self._connect_lock = asyncio.Lock()
        self._closed = False
        self._listeners: set[Listener] = set()
        if isinstance(source, str):
            arguments.integer(min_size, "min_size", least=0, most=1000)
            arguments.integer(max_size, "max_size", least=max(1, min_size), most=1000)
            pooled = listen_database is not None
            own = PsycopgExecutor(source, min_size=min_size, max_size=max_size, pooled=pooled)
            self._listen_executor = own
            if listen_database is not None:
                self._listen_executor = PsycopgExecutor(
                    listen_database, min_size=0, max_size=1, pooled=False, what="listen_database"
                )
            super().__init__(own, installation)
            self.exchanges = True
        elif isinstance(source, PgExecutor):
            super().__init__(ForeignExecutor(source), installation)
        else:
            raise InvalidArgument(
                "the source must be a database URL or an object with query, execute and transaction, "
                f"not {type(source).__name__}"
            )

    async def _rows_planned_afresh(
        self,
        name: str,
        conditions: Collection[str] = (),
        literals: Mapping[str, str] | None = None,
        /,
        **values: Any,
    ) -> list[Row]:
        async with self._transaction() as bound:
            await bound.rows("callers_plans", ["values"])
            return await bound.rows(name, conditions, literals, **values)

    async def connect(self) -> Installation:
        """The connect-time checks (PROTOCOL section 7), once; later calls return what the first found."""
        self._check_open()
        async with self._connect_lock:
            if self.installation is None:
                try:
                    await self._try_connection()
                    checks = SchemaChecks(
                        self._executor,
                        schema=self._schema,
                        owns_connection=isinstance(self._source, str),
                        migrate=self._migrate,
                    )
                    self._install(await checks.run())
                except Exception as error:  # noqa: BLE001 - raised again, as ours
                    raise_translated(error)
        assert self.installation is not None
        return self.installation

    async def close(self) -> None:
        """Close what this process opened, subscriptions too. A caller's executor stays open."""
        self._closed = True
        for listener in list(self._listeners):
            await self._unlisten(listener)
        await self._executor.close()

    async def vacuum_if_due(self) -> bool:
        """Remove the dead rows of the tasks' table where they pile up; waits for nobody. Returns whether it did.

        Autovacuum looks once a minute at best. Without the right to (the role must own the table) nothing happens.
        """
        schema = (await self.connect()).schema
        table, rights = (
            await self._rows("survey/tables", schema=schema),
            await self._rows("survey/rights", schema=schema),
        )
        if not table or not rights[0][3]:
            return False
        live, dead, ago_s = table[0][:3]
        recent = ago_s is not None and ago_s < VACUUM_INTERVAL_S
        if recent or dead < max(VACUUM_LEAST_DEAD, VACUUM_DEAD_SHARE * live):
            return False
        await self._rows("vacuum")
        return True

    def sibling(self) -> PostgresStore | None:
        """A store of the same database with one connection of its own, for another thread.

        None over a caller's executor: we cannot open connections of theirs.
        """
        if not isinstance(self._source, str):
            return None
        return PostgresStore(
            self._source,
            schema=self._schema,
            min_size=0,
            max_size=1,
            listen_database=self._listen_database,
            installation=self.installation,
            migrate=self._migrate,
        )

    async def listen(
        self,
        channels: Sequence[str],
        on_notify: Callable[[str, str], None],
        on_state: Callable[[bool], None],
        *,
        probe: Callable[[str], Awaitable[None]] | None = None,
    ) -> Stop:
        """See `TaskStore.listen`. Over a caller's executor: through its own optional `listen`, taken at its word."""
        self._check_open()
        if self._listen_executor is None:
            return await _listen_foreign(self._source, channels, on_notify, on_state)
        listener = Listener(self._listen_executor.connect, probe or self.notify, channels, on_notify, on_state)
        self._listeners.add(listener)
        return functools.partial(self._unlisten, listener)

    async def _unlisten(self, listener: Listener) -> None:
        self._listeners.discard(listener)
        await listener.stop()

    async def _ready_statements(self) -> Statements:
        self._check_open()
        return await super()._ready_statements()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the store is closed; open a new one")

    async def notify(self, channel: str) -> None:
        await self._rows("notify", channel=channel)

    async def _try_connection(self) -> None:
        """One connection outside the pool first: it fails at once and in the server's own words, where a pool waits."""
        if isinstance(self._executor, PsycopgExecutor):
            try:
                connection = await self._executor.connect()
            except psycopg.OperationalError as error:
                raise translate(error) from error
            await connection.close()


async def _listen_foreign(
    source: object,
    channels: Sequence[str],
    on_notify: Callable[[str, str], None],
    on_state: Callable[[bool], None],
) -> Stop:
    listen = getattr(source, "listen", None)
    if listen is None:

        async def nothing() -> None:
            return None

        return nothing
    unlisten = await listen(
        channels, lambda channel, payload: on_notify(channel, payload or ""), lambda: on_state(False)
    )
    on_state(True)

    async def stop() -> None:
        ending = unlisten()
        if inspect.isawaitable(ending):
            await ending

    return stop
