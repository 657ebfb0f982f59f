"""A private PostgreSQL cluster: made by initdb, on loopback and a socket of its own, gone with the tests."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from tests.support.binaries import Binaries, readable_by
from tests.support.guarded import Guarded, Identity, ServerDidNotStart
from tests.support.sweeper import Sweeper

SETTINGS: Mapping[str, str] = {
    "fsync": "off",  # a crash of the machine loses a test's data, which nobody misses
    "max_connections": "200",
    "shared_buffers": "128MB",
    "max_wal_size": "4GB",
    "log_line_prefix": "%m [%p] %a ",
    "log_min_messages": "warning",
    "max_worker_processes": "16",
}


PORTS = (12_000, 32_000)

ROOMY = 4 << 30
"""Bytes that must be free in shared memory before clusters go there: a database takes 12 ms, on a busy disk 250."""


def storage() -> Path | None:
    """Where clusters live: shared memory where there is room, else the temporary folder (None)."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() and shutil.disk_usage(memory).free >= ROOMY else None


def at_port(dsn: str, port: int) -> str:
    """The same database behind another loopback port: a proxy's, a pooler's."""
    return urlsplit(dsn)._replace(netloc=f"postgres@127.0.0.1:{port}").geturl()


def name_of(dsn: str) -> str:
    """The database that a DSN of ours names."""
    return urlsplit(dsn).path.removeprefix("/")


def free_port() -> int:
    """A loopback port that stays free while its server is down.

    It lies below the range that the kernel takes the ports of outgoing connections from.
    """
    for port in random.sample(range(*PORTS), 100):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise OSError(f"none of 100 ports from {PORTS[0]} to {PORTS[1]} is free")


class Cluster:
    """One server. `start` and `stop` may alternate; the data stays until `close`."""

    def __init__(
        self,
        binaries: Binaries,
        identity: Identity,
        settings: Mapping[str, str] | None = None,
        *,
        on_disk: bool = False,
    ) -> None:
        """`settings` are lines of postgresql.conf beside (and over) the module's `SETTINGS`.

        `on_disk`: in the temporary folder even where shared memory has room, so that a flush of the log costs one.
        """
        # Not below pytest's own temporary folder, which other users may not enter; and short, for the socket's path.
        self.folder = Path(tempfile.mkdtemp(prefix="cairnq-pg-", dir=None if on_disk else storage()))
        self.data = self.folder / "data"
        self.log = self.folder / "log"
        self.port = free_port()
        self.major = binaries.major
        self.id = binaries.id
        self._identity = identity
        identity.own(self.folder)
        self.binaries = readable_by(identity, binaries, self.folder)
        self._settings = {**SETTINGS, **(settings or {})}
        self._numbers = itertools.count(1)
        self._server: Guarded | None = None
        self._sweeper = Sweeper(self.connect)

    @property
    def pid(self) -> int | None:
        """The postmaster's, while it runs."""
        return self._server.pid if self._server is not None else None

    @property
    def running(self) -> bool:
        return self.pid is not None

    def dsn(self, database: str = "postgres", **parameters: Any) -> str:
        """A URI for `database`; `parameters` are libpq's (`application_name="x"`)."""
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}" + (f"?{query}" if query else "")

    def connect(self, database: str = "postgres") -> psycopg.Connection[tuple[Any, ...]]:
        """A plain connection in autocommit, for looking and for breaking things."""
        return psycopg.connect(self.dsn(database), autocommit=True)

    # --- life ---------------------------------------------------------------------------------------

    def create(self) -> None:
        """initdb, and start."""
        try:
            self._initdb()
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self) -> None:
        command = [self.binaries.program("postgres"), "-D", str(self.data), "-p", str(self.port)]
        self._server = Guarded(
            command,
            ready="database system is ready to accept",  # "connections", or "read-only connections" on a standby
            log=self.log,
            identity=self._identity,
            remove=[self.folder],
            environment=self.binaries.environment,
        )
        self._server.start()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT ends sessions and stops (fast); SIGQUIT at once, with recovery at the next start (immediate)."""
        if self._server is not None:
            self._server.stop(how)
            self._server = None

    def restart(self, how: signal.Signals = signal.SIGINT) -> None:
        self.stop(how)
        self.start()

    def close(self) -> None:
        """Ends the server and removes its files."""
        self._sweeper.close()
        if self._server is not None:
            self._server.close()
            self._server = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def log_text(self) -> str:
        return self.log.read_text(errors="replace")

    # --- databases ----------------------------------------------------------------------------------

    def create_database(self, template: str = "template0") -> str:
        """A fresh database, a copy of `template`; returns its name."""
        name = f"db_{next(self._numbers)}"
        with self.connect() as connection:
            connection.execute(
                sql.SQL("create database {} template {} strategy file_copy").format(
                    sql.Identifier(name), sql.Identifier(template)
                )
            )
        return name

    def freeze_database(self, name: str) -> None:
        """Nobody connects to it any more, so that it can be copied at any time."""
        with self.connect() as connection:
            connection.execute(sql.SQL("alter database {} allow_connections false").format(sql.Identifier(name)))

    def drop_database(self, name: str) -> None:
        """Soon; sessions that still use it are ended."""
        self._sweeper.drop(name)

    # --- making -------------------------------------------------------------------------------------

    def _initdb(self) -> None:
        command = [
            *(self.binaries.program("initdb"), "-D", str(self.data), "-U", "postgres", "-E", "UTF8"),
            *("--locale=C", "--auth=trust", "--no-sync", "--no-instructions"),
        ]
        made = subprocess.run(
            command,
            env={**os.environ, **self.binaries.environment},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            **self._identity.options,
        )
        if made.returncode != 0:
            raise ServerDidNotStart(f"initdb of {self.id} failed:\n{made.stdout}{made.stderr}")
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in self._all_settings().items())

    def _all_settings(self) -> dict[str, str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self.folder),
            **self._settings,
        }
        if self.binaries.has_library("pg_stat_statements"):
            settings.setdefault("shared_preload_libraries", "pg_stat_statements")
        return settings
