"""The store that a configuration asks for: on its PostgreSQL, or on its SQLite file."""

from __future__ import annotations

from cairnq.store.base import Installation, TaskStore
from cairnq.store.postgres import PostgresStore
from cairnq.store.sqlite import SqliteStore
from cairnq_supervisor.pure import dsn
from cairnq_supervisor.pure.settings import Settings


def open_store(
    settings: Settings,
    *,
    connections: tuple[int, int],
    installation: Installation | None = None,
    migrate: bool = False,
    direct: bool = False,
) -> TaskStore:
    """A store of this process's own: nothing is opened before its first use.

    `connections`: of PostgreSQL, the least and the most. `installation`: what the preflight found, which is not
    looked for again. `direct`: over `listen_database` where there is one, so that a pooler's turn is not waited for.
    """
    path = dsn.file_of(settings.database)
    if path is not None:
        return SqliteStore(path, installation=installation, migrate=migrate)
    least, most = connections
    return PostgresStore(
        (settings.listen_database if direct else None) or settings.database,
        schema=settings.schema,
        min_size=least,
        max_size=most,
        listen_database=None if direct else settings.listen_database,
        installation=installation,
        migrate=migrate,
    )
