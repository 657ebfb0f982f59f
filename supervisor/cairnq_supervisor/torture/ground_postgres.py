"""A schema of its own in a PostgreSQL database; two hosts, each behind a proxy of its own where there is TCP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cairnq.client import CairnQ
from cairnq.db.connection import parse_dsn
from cairnq.pure.clock import boottime
from cairnq.pure.errors import DatabaseUnavailable
from cairnq_supervisor.torture.ground import Ground, statement
from cairnq_supervisor.torture.proxy import LOOPBACK, Proxy
from cairnq_supervisor.torture.schedule import Ability

_DEFAULT_PORT = "5432"
_RESTART_PATIENCE_S = 60.0
"""Seconds for which a server that was restarted may refuse connections."""


class PostgresGround(Ground):
    """`database` as `cairnq run` takes it; `direct`: where the server itself is, if a pooler stands before it."""

    dialect = "postgres"
    hosts = 2

    def __init__(self, database: str, *, direct: str | None, name: str, abilities: Collection[Ability]) -> None:
        """`name`: of the schema; it names the fleets' sessions too. Raises `InvalidDsn`."""
        parse_dsn(database)
        self._database = database
        self._direct = direct
        self._name = name
        self._target = _target(database)
        here = {Ability.SERVER, Ability.PEER} | ({Ability.NETWORK} if self._target is not None else set())
        self.abilities = frozenset(abilities) | here
        self.where = f"schema {name}"
        self.effects = f'"{name}".torture_effects'
        self.settings = {"schema": f'"{name}"'}

    def database(self, host: int | None) -> str:
        extra = {"application_name": self._name if host is not None else f"{self._name}-clients"}
        if host is not None and self.proxies:
            # Host and TLS stay as they are: only where the connection goes is another.
            extra |= {"hostaddr": LOOPBACK, "port": str(self.proxies[host].port)}
        return make_conninfo(self._database, **extra)

    def client(self, host: int | None) -> CairnQ:
        return CairnQ.postgres(self.database(host), schema=self._name, listen_database=self._direct)

    async def lock(self, seconds: float) -> bool:
        with suppress(psycopg.OperationalError):  # the server was restarted meanwhile: its locks are gone
            async with await self._connect() as connection:
                found = await (await connection.execute(statement("postgres/lock_rows"))).fetchall()
                if not found:
                    return False
                await asyncio.sleep(seconds)
        return True

    async def end_sessions(self, target: float) -> bool:
        with suppress(psycopg.OperationalError):  # as above
            async with await self._connect() as connection:
                reply = await connection.execute(statement("postgres/sessions"), [self._name])
                pids = [pid for (pid,) in await reply.fetchall()]
                chosen = pids if target < 0.1 else pids[int(target * len(pids)) :][:1]
                for pid in chosen:
                    await connection.execute(statement("postgres/end_session"), [pid])
                return bool(chosen)
        return False

    @asynccontextmanager
    async def _reached(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if self._target is not None:
                ways = [Proxy(*self._target) for _ in range(self.hosts)]
                self.proxies = [await stack.enter_async_context(way.listening()) for way in ways]
            yield

    async def _connect(self) -> psycopg.AsyncConnection[tuple[Any, ...]]:
        """To the server itself, with the run's schema first. Waits for a server that starts again."""
        deadline = boottime() + _RESTART_PATIENCE_S
        while True:
            try:
                return await self._open()
            except psycopg.OperationalError as error:
                if boottime() > deadline:
                    raise DatabaseUnavailable(f"the server has not come back: {error}") from error
                await asyncio.sleep(0.2)

    async def _open(self) -> psycopg.AsyncConnection[tuple[Any, ...]]:
        connection = await psycopg.AsyncConnection.connect(self._direct or self._database)
        await connection.execute(sql.SQL("set search_path to {}").format(sql.Identifier(self._name)))
        await connection.commit()
        return connection

    async def _run_script(self, text: str) -> None:
        async with await self._connect() as connection:
            await connection.execute(text.encode())

    async def _query(self, text: str) -> list[tuple[Any, ...]]:
        async with await self._connect() as connection:
            return await (await connection.execute(text.encode())).fetchall()

    async def _insert(self, text: str, rows: Sequence[tuple[Any, ...]]) -> None:
        async with await self._connect() as connection:
            await connection.cursor().executemany(text.encode(), rows)

    async def _remove(self) -> None:
        async with await self._connect() as connection:
            await connection.execute(sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(self._name)))


def _target(database: str) -> tuple[str, int] | None:
    """Where the server listens; None: a Unix socket or several hosts, before which no proxy of ours can stand."""
    settings = {name: str(value) for name, value in conninfo_to_dict(database).items()}
    host = settings.get("hostaddr") or settings.get("host", "")
    port = settings.get("port", _DEFAULT_PORT)
    if not host or host.startswith(("/", "@")) or "," in host or not port.isdigit():
        return None
    return host, int(port)
