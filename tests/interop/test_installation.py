"""Two SDKs that connect to one database, in either order: neither adds to what the other has made twice."""

from __future__ import annotations

import psycopg

from cairnq import CairnQ
from tests.support import peers
from tests.support.peers import Peer

_OBJECTS = """
select 'index', indexdef from pg_indexes where schemaname = 'public'
union all
select 'trigger', pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
order by 1, 2
"""


def objects(dsn: str) -> list[tuple[str, str]]:
    with psycopg.connect(dsn) as connection:
        return [(str(kind), str(text)) for kind, text in connection.execute(_OBJECTS)]


def ledger(dsn: str) -> list[str]:
    with psycopg.connect(dsn) as connection:
        return [str(name) for (name,) in connection.execute("select name from cairnq_migrations order by name")]


async def test_they_add_nothing_to_a_database_of_ours(release: Peer, database: str) -> None:
    before, names = objects(database), ledger(database)
    async with peers.running(release, database) as theirs:
        await theirs.call("submit", name="x")
    assert (objects(database), ledger(database)) == (before, names)


async def test_nothing_changes_after_both_have_connected_to_one_of_theirs(release: Peer, empty_database: str) -> None:
    async with peers.running(release, empty_database) as theirs:
        task = await theirs.call("submit", name="x", payload=[1])
    first = objects(empty_database)
    async with CairnQ.postgres(empty_database) as ours:
        seen = await ours.get(task["id"])
        assert seen is not None
        assert seen.payload == [1]
    joined = objects(empty_database)
    assert set(first) < set(joined)
    async with peers.running(release, empty_database) as theirs:
        assert (await theirs.call("get", task_id=task["id"]))["status"] == "queued"
    async with CairnQ.postgres(empty_database):
        assert objects(empty_database) == joined


async def test_a_queued_task_is_announced_once(release: Peer, empty_database: str) -> None:
    """Theirs and ours both send it by a trigger; two triggers would say it twice."""
    async with peers.running(release, empty_database), CairnQ.postgres(empty_database) as ours:
        triggers = [text for kind, text in objects(empty_database) if kind == "trigger"]
        with psycopg.connect(empty_database, autocommit=True) as listening:
            listening.execute("listen cairnq_queued")
            await ours.submit("x", queue="q")
            listening.execute("notify cairnq_queued, 'the last'")
            heard = [note.payload for note in listening.notifies(timeout=10, stop_after=2)]
    assert heard == ["q", "the last"], triggers
