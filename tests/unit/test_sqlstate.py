"""What a driver's exception means: one of five answers, by SQLSTATE where there is one, by libpq's words where not."""

from __future__ import annotations

import psycopg
import psycopg_pool
import pytest
from psycopg import errors as pg

from cairnq import (
    CairnQError,
    ConnectError,
    DatabaseReadOnly,
    DatabaseUnavailable,
    InvalidArgument,
    LostLease,
    PermissionDenied,
)
from cairnq.db.sqlstate import Fault, classify, sqlstate_of, translate

STATES = {
    Fault.RETRY: ("40001", "40P01", "55P03", "57014"),
    Fault.GONE: (
        *("08000", "08006", "08P01", "25P03", "40003", "53000", "53100", "53200", "53300"),
        *("57P01", "57P02", "57P03", "57P05", "58030"),
    ),
    Fault.CONFIGURATION: ("25006", "26000", "28P01", "3D000", "3F000", "42501", "42939", "42P01", "42P05"),
    Fault.DATA: ("22003", "22P02", "22P05", "23505", "23502", "54000", "54001"),
    Fault.BUG: ("42601", "42703", "42883", "0A000", "XX000", "25P02"),
}


def raised(state: str) -> psycopg.Error:
    """As psycopg raises it for a reply of the server."""
    try:
        return pg.lookup(state)("the server's words")
    except KeyError:
        error = psycopg.DatabaseError("the server's words")
        error.sqlstate = state
        return error


@pytest.mark.parametrize(("fault", "state"), [(fault, state) for fault in STATES for state in STATES[fault]])
def test_a_state_is_one_of_five_faults(fault: Fault, state: str) -> None:
    assert classify(raised(state)) is fault


@pytest.mark.parametrize(("fault", "state"), [(fault, state) for fault in STATES for state in STATES[fault]])
def test_the_error_of_ours_means_what_it_stands_for(fault: Fault, state: str) -> None:
    original = raised(state)
    ours = translate(original)
    assert translate(ours) is ours
    if ours is not original:
        ours.__cause__ = original
    assert sqlstate_of(ours) == state
    assert classify(ours) is fault


@pytest.mark.parametrize(
    ("state", "kind", "says"),
    [
        ("25006", DatabaseReadOnly, "in recovery or read-only: the server's words"),
        ("42501", PermissionDenied, "the role lacks a right: the server's words"),
        ("57P01", DatabaseUnavailable, "cannot be reached: the server's words"),
        ("53100", DatabaseUnavailable, "the server's words"),
        (
            "53200",
            DatabaseUnavailable,
            "no memory or no locks left for this: the server's words; split a batch of keys",
        ),
        ("3F000", ConnectError, "cannot be used as configured: the server's words"),
        ("42P05", ConnectError, "transaction pooler; say so with listen_database="),
        ("22003", InvalidArgument, "refuses a value: the server's words"),
    ],
)
def test_a_translation_has_a_name_and_the_servers_words(state: str, kind: type[CairnQError], says: str) -> None:
    ours = translate(raised(state))
    assert type(ours) is kind
    assert says in str(ours)


@pytest.mark.parametrize("state", ["40P01", "42601", "XX000"])
def test_what_has_no_name_of_ours_stays_as_it_is(state: str) -> None:
    error = raised(state)
    assert translate(error) is error


REFUSALS = [
    'FATAL:  password authentication failed for user "x"',
    "fe_sendauth: no password supplied",
    'FATAL:  role "x" does not exist',
    'FATAL:  database "x" does not exist',
    'FATAL:  no pg_hba.conf entry for host "::1", user "x", database "x", no encryption',
    'FATAL:  pg_hba.conf rejects connection for host "::1", user "x", database "x", no encryption',
    'FATAL:  role "x" is not permitted to log in',
    'FATAL:  permission denied for database "x"\nDETAIL:  User does not have CONNECT privilege.',
    "server does not support SSL, but SSL was required",
    'invalid sslmode value: "x"',
    'invalid port number: "0"',
    'FATAL:  unrecognized configuration parameter "x"',
    'FATAL:  invalid value for parameter "work_mem": "x"',
    "FATAL:  unsupported startup parameter: options",
    'definition of service "x" not found',
    'root certificate file "/x" does not exist',
]

OUTAGES = [
    'connection to server at "127.0.0.1", port 1 failed: Connection refused\n\tIs the server running on that host?',
    "failed to resolve host 'x': [Errno -3] Temporary failure in name resolution",
    "FATAL:  the database system is starting up",
    "FATAL:  the database system is shutting down",
    "FATAL:  sorry, too many clients already",
    'FATAL:  too many connections for role "x"',
    "connection timeout expired",
    "server closed the connection unexpectedly",
    "server is in hot standby mode",
    "session is read-only",
    'connection to server on socket "/x/.s.PGSQL.5432" failed: No such file or directory',
]


@pytest.mark.parametrize("words", REFUSALS)
def test_a_connection_refused_for_good_is_no_outage(words: str) -> None:
    error = psycopg.OperationalError("connection failed: " + words)
    assert classify(error) is Fault.CONFIGURATION
    assert words.replace("\n", "; ") in str(translate(error))
    assert not isinstance(translate(error), DatabaseUnavailable)


@pytest.mark.parametrize("words", OUTAGES)
def test_a_connection_that_may_be_made_later_is_an_outage(words: str) -> None:
    error = psycopg.OperationalError("connection failed: " + words)
    assert classify(error) is Fault.GONE
    assert isinstance(translate(error), DatabaseUnavailable)
    assert str(translate(error)).isprintable(), "libpq's lines and tabs"


def test_a_right_to_connect_is_a_right() -> None:
    error = psycopg.OperationalError('FATAL:  permission denied for database "x"')
    assert isinstance(translate(error), PermissionDenied)


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (psycopg.OperationalError("the connection is closed"), Fault.GONE),
        (psycopg.InterfaceError("the cursor is closed"), Fault.GONE),
        (psycopg_pool.PoolTimeout("couldn't get a connection after 10.00 sec"), Fault.GONE),
        (ConnectionResetError(104, "Connection reset by peer"), Fault.GONE),
        (psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes"), Fault.DATA),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"), Fault.DATA),
        (DatabaseUnavailable("away"), Fault.GONE),
        (PermissionDenied("no"), Fault.CONFIGURATION),
        (LostLease("task_1"), Fault.BUG),
        (KeyError("ours"), Fault.BUG),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_state_is_known_by_its_kind(error: Exception, fault: Fault) -> None:
    assert classify(error) is fault


def test_another_drivers_error_is_known_by_its_state() -> None:
    class TheirError(Exception):
        sqlstate = "40P01"

    assert classify(TheirError()) is Fault.RETRY
