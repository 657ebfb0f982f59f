"""Two SDKs that connect to one database, in either order: neither adds to what the other has made twice."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from cairnq import CairnQ
from tests.support import peers
from tests.support.peers import Peer, PeerError
from tests.support.roles import role_of
from tests.support.routes import Route, is_file
from tests.support.tasks import ask

_OF_SERVER = """
select 'index', indexdef from pg_indexes where schemaname = 'public'
union all
select 'trigger', pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
order by 1, 2
"""
_OF_FILE = "select type, name from sqlite_master where type in ('index', 'trigger') order by 1, 2"


def objects(dsn: str) -> list[tuple[Any, ...]]:
    return ask(dsn, _OF_FILE if is_file(dsn) else _OF_SERVER)


def ledger(dsn: str) -> list[str]:
    return [str(name) for (name,) in ask(dsn, "select name from cairnq_migrations order by name")]


async def test_they_add_nothing_to_a_database_of_ours(release: Peer, database: str) -> None:
    before, names = objects(database), ledger(database)
    async with peers.running(release, database) as theirs:
        await theirs.call("submit", name="x")
    assert (objects(database), ledger(database)) == (before, names)


async def test_nothing_changes_after_both_have_connected_to_one_of_theirs(release: Peer, empty_database: str) -> None:
    async with peers.running(release, empty_database) as theirs:
        task = await theirs.call("submit", name="x", payload=[1])
    first = objects(empty_database)
    async with Route(empty_database).client() as ours:
        seen = await ours.get(task["id"])
        assert seen is not None
        assert seen.payload == [1]
    joined = objects(empty_database)
    assert set(first) < set(joined)
    async with peers.running(release, empty_database) as theirs:
        assert (await theirs.call("get", task_id=task["id"]))["status"] == "queued"
    async with Route(empty_database).client():
        assert objects(empty_database) == joined


@pytest.mark.postgres
async def test_a_queued_task_is_announced_once(release: Peer, empty_database: str) -> None:
    """Theirs and ours both send it by a trigger; two triggers would say it twice."""
    async with peers.running(release, empty_database), CairnQ.postgres(empty_database) as ours:
        triggers = [text for kind, text in objects(empty_database) if kind == "trigger"]
        with psycopg.connect(empty_database, autocommit=True) as listening:
            listening.execute("listen cairnq_queued")
            await ours.submit("x", queue="q")
            listening.execute("notify cairnq_queued, 'the last'")
            heard = [note.payload for note in listening.notifies(timeout=60, stop_after=2)]
    assert heard == ["q", "the last"], triggers


@pytest.mark.postgres
async def test_theirs_cannot_connect_as_a_client_of_ours(release: Peer, database: str) -> None:
    """It makes its ledger at each connect. docs/operations.md says so: who wants it gives it more rights."""
    with role_of(database, "client") as dsn, pytest.raises(PeerError, match="permission denied for schema public"):
        async with peers.running(release, dsn):
            pass
    with role_of(database, "client") as dsn:
        async with Route(dsn).client() as ours:
            assert await ours.submit("x")
