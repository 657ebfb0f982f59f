"""Roles with the rights that `cairnq roles` prints, for as long as a test needs them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import psycopg

from cairnq.db.statements import Statements, quote_identifier
from tests.support.cluster import name_of


@contextmanager
def role_of(database: str, kind: str) -> Iterator[str]:
    """The DSN of a new role of `database` with the rights of a "client" or of a "worker"."""
    name = f'Odd "{kind}" {name_of(database)}'
    quoted = quote_identifier(name)
    script = Statements("postgres", "public").get(f"roles/{kind}", (), {"schema": "public", "role": quoted})
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"create role {quoted} login".encode())
        try:
            connection.execute(script.text.encode())
            yield database.replace("postgres@", f"{quote(name)}@")
        finally:
            connection.execute(f"drop owned by {quoted}".encode())
            connection.execute(f"drop role {quoted}".encode())
