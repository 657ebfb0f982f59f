"""A submit over the caller's own blocking connection is part of their transaction."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing, contextmanager

import psycopg
import pytest
from psycopg.rows import dict_row

from cairnq import AlreadyExists, InvalidArgument, QueueFull
from tests.support.routes import is_file
from tests.sync.conftest import opened

SUBMITS = {
    "one": lambda tasks, session: [tasks.submit("x", {"n": [1]}, session=session)],
    "one under a key": lambda tasks, session: [tasks.submit("x", key="k", session=session)],
    "many": lambda tasks, session: tasks.submit_many([{"name": "x"}, {"name": "y"}], session=session),
    "many under keys": lambda tasks, session: tasks.submit_many(
        [{"name": "x", "key": "a"}, {"name": "x", "key": "a"}], session=session
    ),
}


class Foreign:
    """Somebody's wrapper around somebody's driver."""

    def __init__(self, connection):
        self._connection = connection

    def query(self, text, values):
        with psycopg.RawCursor(self._connection, row_factory=dict_row) as cursor:
            cursor.execute(text, values)
            return cursor.fetchall() if cursor.description else []


@contextmanager
def lent(database, how):
    """What is passed as the session, and the functions that end its transaction."""
    if how == "manual":  # as Django has it
        with closing(sqlite3.connect(database, isolation_level=None)) as file:
            file.row_factory = lambda _, row: dict(enumerate(map(str, row), 100))
            file.execute("begin")
            yield file, file.commit, file.rollback
    elif is_file(database):
        with closing(sqlite3.connect(database)) as file:
            yield file, file.commit, file.rollback
    else:
        options = {"row_factory": dict_row, "prepare_threshold": None} if how == "odd" else {}
        with closing(psycopg.connect(database, **options)) as connection:
            session = Foreign(connection) if how == "foreign" else connection
            yield session, connection.commit, connection.rollback


def ways(database):
    return ("plain", "manual") if is_file(database) else ("plain", "odd", "foreign")


@pytest.mark.parametrize("submit", SUBMITS.values(), ids=SUBMITS)
def test_it_is_seen_with_the_commit_and_gone_with_the_rollback(tasks, database, submit):
    for way in ways(database):
        with lent(database, way) as (session, commit, rollback):
            submit(tasks, session)
            assert tasks.list() == [], way
            rollback()
            assert tasks.list() == [], way
        with lent(database, way) as (session, commit, rollback):
            made = {task.id: task for task in submit(tasks, session)}
            commit()
        assert {task.id: task for task in tasks.list()} == made, way
        for task_id in made:
            tasks.cancel(task_id)
        tasks.purge()


class Autocommitting(sqlite3.Connection):
    """What Python 3.12 and later make where `autocommit=True` is asked for, on any version."""

    autocommit = True
    isolation_level = ""

    def commit(self):
        """Does nothing."""

    def rollback(self):
        """Does nothing."""


def in_autocommit(database, how):
    if not is_file(database):
        return psycopg.connect(database, autocommit=True)
    if how == "attribute":
        return sqlite3.connect(database, isolation_level=None, factory=Autocommitting)
    if how == "attribute of 3.12" and sys.version_info >= (3, 12):
        return sqlite3.connect(database, autocommit=True)
    return sqlite3.connect(database, isolation_level=None)


@pytest.mark.parametrize("how", ["level", "attribute", "attribute of 3.12"])
def test_a_key_without_a_transaction_gets_one(tasks, database, how):
    with closing(in_autocommit(database, how)) as connection:
        ran = []
        if is_file(database):
            connection.set_trace_callback(lambda statement: ran.append(statement.lower()))
        task = tasks.submit("x", key="k", session=connection)
        assert tasks.get_by_key("k") == task
        if is_file(database):
            assert [one for one in ran if one in ("begin immediate", "commit")] == ["begin immediate", "commit"]
        else:
            row, key = (
                connection.execute(f"select xmin from {table}") for table in ("cairnq_tasks", "cairnq_task_keys")
            )
            assert row.fetchall() == key.fetchall(), "one transaction wrote both"
        with pytest.raises(AlreadyExists):
            tasks.submit("x", key="k", conflict="reject", session=connection)
        assert tasks.submit("x", key="k", conflict="replace", session=connection).id != task.id
        assert tasks.get(task.id).canceled


def test_a_full_queue_is_told_at_once_for_nothing_waits_inside_a_transaction(database):
    with opened(database, max_queue_depth=1) as tasks, lent(database, "plain") as (session, commit, _):
        tasks.submit("x", session=session)
        commit()
        with pytest.raises(QueueFull):
            tasks.submit("x", session=session)


def test_what_cannot_be_a_session_is_refused(tasks, database, tmp_path):
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        refusals = [("here", "session must be a Connection of psycopg or sqlite3")]
        if is_file(database):
            refusals += [(other, "needs them in one file"), (Foreign(None), "is no connection to SQLite")]
        else:
            refusals += [(other, "is a connection to SQLite")]
        for session, reason in refusals:
            with pytest.raises(InvalidArgument, match=reason):
                tasks.submit("x", session=session)


@pytest.mark.postgres
def test_the_caller_s_own_errors_stay_theirs(tasks, database):
    with lent(database, "plain") as (connection, _, rollback):
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("select * from nowhere")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            tasks.submit("x", session=connection)
        rollback()
        assert tasks.submit("x", session=connection).queued


@pytest.mark.postgres
@pytest.mark.parametrize("submit", SUBMITS.values(), ids=SUBMITS)
@pytest.mark.parametrize("autocommit", [False, True])
def test_a_pipeline_is_refused_before_anything_is_sent(tasks, database, submit, autocommit):
    with psycopg.connect(database, autocommit=autocommit) as connection:
        with connection.pipeline(), pytest.raises(InvalidArgument, match="pipeline mode"):
            submit(tasks, connection)
        connection.commit()
        assert tasks.list() == []
        submit(tasks, connection)
    assert tasks.list() != []
