"""What the migrations make is the same whichever way a database came to them."""

from __future__ import annotations

import os
import re
import subprocess

import psycopg
import pytest

from cairnq.db.statements import migrations
from cairnq.store.postgres import PostgresStore
from tests.support import peers
from tests.support.cluster import Cluster
from tests.support.peers import Peer

PARTIAL_LEDGERS = [len(migrations("postgres")) - missing for missing in range(1, len(migrations("postgres")))]


def dump(server: Cluster, dsn: str) -> str:
    """The schema as pg_dump writes it, and the rows of the small tables without their times."""
    command = [server.binaries.program("pg_dump"), "--schema-only", "--no-owner", dsn]
    environment = {**os.environ, **server.binaries.environment}
    text = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    text = re.sub(r"^(--|\\(un)?restrict).*$", "", text, flags=re.MULTILINE)  # comments, and a token of each run
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "select name from cairnq_migrations union all select key || '=' || value from cairnq_meta order by 1"
        ).fetchall()
    return text + "\n".join(row[0] for row in rows)


async def install(dsn: str) -> None:
    store = PostgresStore(dsn, max_size=1)
    await store.connect()
    await store.close()


async def test_a_second_run_of_every_migration_changes_nothing(server: Cluster, empty_database: str):
    await install(empty_database)
    fresh = dump(server, empty_database)
    await install(empty_database)
    assert dump(server, empty_database) == fresh
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute("delete from cairnq_migrations where name like 'lean/%%'")
    await install(empty_database)  # joins, as it would join another SDK's
    assert dump(server, empty_database) == fresh


@pytest.mark.parametrize("present", PARTIAL_LEDGERS)
async def test_an_older_installation_of_ours_becomes_a_fresh_one(server: Cluster, empty_database: str, present: int):
    """As an older release left it: the first so many migrations, and the ledger that says so."""
    other = server.create_database()
    await install(server.dsn(other))
    fresh = dump(server, server.dsn(other))
    with psycopg.connect(server.dsn(other)) as connection:
        names = [row[0] for row in connection.execute("select name from cairnq_migrations order by name")]
    server.drop_database(other)
    ours = [name for name in names if name.startswith("lean/")]
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute("create table cairnq_migrations (name text primary key, applied_at_ms bigint not null)")
        for _, text in migrations("postgres")[:present]:
            connection.execute(text.encode())
        applied = [name for name in names if name not in ours[present:]]
        connection.execute("insert into cairnq_migrations select unnest(%s::text[]), 0", [applied])
    await install(empty_database)
    assert dump(server, empty_database) == fresh


@pytest.mark.parametrize("release", [peers.PINNED, peers.NEWEST])
async def test_a_database_of_another_sdk_keeps_everything_and_gains_ours(
    server: Cluster, empty_database: str, release: str
):
    peer = _installed(release)
    async with peers.running(peer, empty_database) as theirs:
        await theirs.call("submit", name="x")
    before = dump(server, empty_database)
    await install(empty_database)
    joined = dump(server, empty_database)
    indexes = re.compile(r"^CREATE INDEX .*$", re.MULTILINE)
    assert set(indexes.findall(before)) < set(indexes.findall(joined))
    assert joined.count("CREATE TRIGGER") == before.count("CREATE TRIGGER") == 1
    gained = set(indexes.findall(joined)) - set(indexes.findall(before))
    assert all("cairnq_lean_" in text for text in gained)
    await install(empty_database)
    assert dump(server, empty_database) == joined


def _installed(release: str) -> Peer:
    try:
        return peers.install(release)
    except peers.PeerUnavailable as error:
        pytest.skip(f"cairnq {release} from PyPI: {error}")
