"""The statements that are too small for a plan: what each answers, on a real database."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from cairnq.db.statements import Statements, migrations, quote_identifier
from cairnq.store.postgres import PostgresStore
from tests.sql.backlog import SHARED, Backlog, running, task_ids

SUBMITTED = {"name": "n", "queue": "q", "max_attempts": 5, "priority": -1, "correlation_id": "c", "delay_ms": 60_000}


def run(
    connection: psycopg.Connection[Any],
    name: str,
    /,
    *,
    within: str | None = "public",
    conditions: Sequence[str] = (),
    literals: dict[str, str] | None = None,
    **values: Any,
) -> list[tuple[Any, ...]]:
    statement = Statements("postgres", within).get(name, conditions, literals)
    cursor = psycopg.RawCursor(connection)
    cursor.execute(statement.text.encode(), statement.arrange(values))
    return [] if cursor.description is None else cursor.fetchall()


@pytest.fixture
def plain(store: PostgresStore, database: str) -> Any:
    """A connection to a database with an installation."""
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


@pytest.mark.statement("now")
def test_now_is_the_clock_and_not_the_start_of_the_transaction(plain):
    with plain.transaction():
        first = run(plain, "now")[0][0]
        while run(plain, "now")[0][0] == first:
            continue
    assert abs(first - time.time() * 1000) < 60_000


@pytest.mark.statement("submit", "submit_one", "submit_alike", "get")
@pytest.mark.parametrize("given", [{}, {"parent_id": "task_p", "root_id": "task_r", "metadata": '{"m": [1]}'}])
def test_all_forms_of_submit_write_the_same_row(plain, given):
    one = SUBMITTED | {"payload": '{"a": 1}', "metadata": "{}", "parent_id": None, "root_id": None} | given
    many = {f"{column}s": [value] for column, value in one.items()}
    plural = {"prioritys": "priorities", "max_attemptss": "max_attempts", "delay_mss": "delays_ms"}
    many = {plural.get(column, column): value for column, value in many.items()}
    told = {
        "task_1": run(plain, "submit_one", **one, id="task_1"),
        "task_2": run(plain, "submit", **many, ids=["task_2"]),
        "task_3": run(plain, "submit_alike", **one, ids=["task_3", "task_4"], payloads=[one["payload"], '"other"']),
    }
    told["task_4"] = told["task_3"]
    rows = [list(run(plain, "get", id=task_id)[0]) for task_id in told]
    for row, answer in zip(rows, told.values(), strict=True):
        assert answer == [(row[20],)]
        assert (row[15], row[21]) == (row[20] + 60_000, row[20])
        assert row[18] == given.get("root_id", row[0])  # a root is its own
    assert [row[4] for row in rows] == ['{"a": 1}'] * 3 + ['"other"']
    for row in rows:
        del row[20:22], row[18], row[15], row[4], row[0]
    assert rows == rows[:1] * 4


@pytest.mark.statement("point_keys", "lock_keys")
def test_a_key_points_at_the_latest_task(plain):
    with plain.transaction():
        assert run(plain, "lock_keys", keys=["a", "b", "a"]) == [("", "read committed")] * 2
        locks = plain.execute("select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()")
        assert locks.fetchone() == (2,)
    one = {"payload": "{}", "metadata": "{}", "parent_id": None, "root_id": None}
    for task_id in ("task_1", "task_2"):
        run(plain, "submit_one", **SUBMITTED, **one, id=task_id)
        run(plain, "point_keys", keys=["a"], task_ids=[task_id])
    assert plain.execute("select key, task_id from cairnq_task_keys").fetchall() == [("a", "task_2")]


@pytest.mark.statement("listen", "notify")
def test_what_is_notified_is_heard(plain, database):
    channel = 'Odd "channel"'
    run(plain, "listen", within=None, literals={"channel": quote_identifier(channel)})
    with psycopg.connect(database, autocommit=True) as other:
        run(other, "notify", channel=channel)
    heard = next(iter(plain.notifies(timeout=60, stop_after=1)))
    assert (heard.channel, heard.payload) == (channel, "")


@pytest.mark.statement("meta")
def test_the_installation_tells_its_versions(plain):
    assert run(plain, "meta", key="protocol_version") == [("1",)]
    assert run(plain, "meta", key="nothing") == []


@pytest.mark.statement("connection", "callers_plans")
def test_a_connections_settings_are_lifted_for_one_transaction(plain):
    settings = "select name, setting from pg_settings where name ~ '^(enable_|jit$|plan_cache_mode)' order by 1"
    before = plain.execute(settings).fetchall()
    run(plain, "connection", within=None)
    ours = plain.execute(settings).fetchall()
    assert ours != before
    with plain.transaction():
        run(plain, "callers_plans", within=None)
        assert dict(plain.execute(settings).fetchall()) == dict(before) | {"jit": "on"}
        run(plain, "callers_plans", within=None, conditions=["values"])
        assert dict(plain.execute(settings).fetchall())["plan_cache_mode"] == "force_custom_plan"
    assert plain.execute(settings).fetchall() == ours


@pytest.mark.statement("ended")
def test_the_ended_and_the_missing_are_told_apart_from_the_live(backlog: Backlog):
    finished, live = task_ids(1, 3), running(3)
    with psycopg.connect(backlog.fresh) as connection:
        found = run(connection, "ended", ids=[*finished, *live, "task_nobody"])
    assert {row[0] for row in found} == {*finished, "task_nobody"}


@pytest.mark.statement(
    "install/begin",
    "install/find",
    "install/ledger_add",
    "install/ledger_create",
    "install/ledger_exists",
    "install/ledger_lock",
    "install/ledger_read",
    "install/schema_create",
    "install/schema_exists",
)
def test_an_installation_by_hand_is_what_connecting_makes(empty_database):
    schema = 'Odd "schema"'
    with psycopg.connect(empty_database, autocommit=True) as connection:
        assert run(connection, "install/schema_exists", schema=schema) == [(False,)]
        run(connection, "install/schema_create", within=None, literals={"schema": quote_identifier(schema)})
        assert run(connection, "install/schema_exists", schema=schema) == [(True,)]
    with psycopg.connect(empty_database) as connection:
        run(connection, "install/begin", within=schema, search_path=quote_identifier(schema), lock_timeout="5s")
        run(connection, "install/ledger_create", within=schema)
        run(connection, "install/ledger_lock", within=schema)
        for _, text in migrations("postgres"):
            connection.execute(text.encode())
        run(connection, "install/ledger_add", within=schema, names=["b", "a"])
        assert run(connection, "install/ledger_read", within=schema) == [("a",), ("b",)]
        assert run(connection, "install/ledger_exists", schema=schema) == [(True,)]
        current, holders, recovering, _, _ = run(connection, "install/find", within=None)[0]
        assert (current, holders, recovering) == (schema, [schema], False)


@pytest.mark.statement("survey/oldest_finished", "survey/rights", "survey/server", "survey/snapshots", "survey/tables")
def test_the_survey_reads_what_stands_there(backlog: Backlog):
    with psycopg.connect(backlog.fresh, autocommit=True) as connection:
        ended, now = run(connection, "survey/oldest_finished")[0]
        assert 0 < now - ended < 86_400_000
        assert run(connection, "survey/rights", schema="public")[0][1:] == (True, True, True, [])
        assert run(connection, "survey/server")[0][0] >= 140_000
        assert run(connection, "survey/snapshots", least_s=3600) == []
        live, _, _, vacuums, wakes = run(connection, "survey/tables", schema="public")[0]
        assert live > 200_000
        assert (vacuums, wakes) == (False, True)  # the backlog's own choice, to keep its statistics
        assert run(connection, "survey/tables", schema="elsewhere") == []


@pytest.mark.statement("queue_depth")
def test_depth_stops_at_its_bound(backlog: Backlog):
    with psycopg.connect(backlog.fresh) as connection:
        assert run(connection, "queue_depth", queue=SHARED, bound=7) == [(7,)]
        assert run(connection, "queue_depth", queue="nobody", bound=7) == [(0,)]
