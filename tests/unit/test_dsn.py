"""A database URL: completed with what makes a dead server be noticed, refused without repeating a password."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cairnq import CairnQ, ConnectError, InvalidArgument, InvalidDsn
from cairnq.db.connection import parse_dsn

MALFORMED = [
    "postgresql://app:hush@ush@127.0.0.1/db",
    "postgresql://app:hush/ush@host/db",
    "postgresql://app:hush%zz@host/db",
    "postgresql://app:hush%00ush@host/db",
    "postgresql://app:hush ush@host/db",
    "postgresql://app:hush@[::1/db",
    "postgresql://app:hush@host:5432:1/db",
    "postgresql://app:hush@host:port/db",
    "postgresql://app:hush@host:0/db",
    "postgresql://app:hush@host:65536/db",
    "postgresql://app:hush@host/db?nope=1",
    "postgresql://app:hush@host/db?sslmode",
    "postgresql://app:hush@host/db?connect_timeout=soon",
    "mysql://app:hush@host/db",
    "host=h password='hush",
    "host=h password=hush ush",
    'password="hush\'ush" hush',
    "hush\ud800",
    "hush\x00",
]


@pytest.mark.parametrize("dsn", MALFORMED)
def test_what_does_not_parse_is_refused_and_not_repeated(dsn: str) -> None:
    with pytest.raises(InvalidDsn) as refused:
        parse_dsn(dsn)
    said = str(refused.value)
    assert "ush" not in said
    assert said.startswith("the database URL")
    assert "postgresql://user@host:5432/name" in said
    assert refused.value.__cause__ is None
    assert isinstance(refused.value, (ConnectError, InvalidArgument))


@pytest.mark.parametrize("dsn", ["", "  ", "\n"])
def test_an_empty_url_is_refused_where_libpq_would_take_its_defaults(dsn: str) -> None:
    with pytest.raises(InvalidDsn, match="is empty"):
        parse_dsn(dsn)


SECRET = "S3CRET"


@given(st.text(max_size=8), st.text(max_size=8), st.sampled_from(["postgresql://u:{}@h/d", "host=h password={}"]))
def test_whatever_stands_around_a_password_it_is_not_repeated(before: str, after: str, shape: str) -> None:
    try:
        parse_dsn(shape.format(before + SECRET + after))
    except InvalidDsn as refused:
        assert SECRET not in str(refused)


def test_a_refusal_says_which_url_it_was() -> None:
    with pytest.raises(InvalidDsn, match="^listen_database does not parse"):
        CairnQ.postgres("postgresql://host/db", listen_database="nonsense")


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://app:p%40ss%2Fw%3Ard@host:5432/db",
        "postgresql://host",
        "postgres:///db?host=/var/run/postgresql",
        "host=a,b port=1,2 dbname=db",
        "postgresql://a:1,b:2/db?target_session_attrs=read-write",
        "postgresql://[::1]:5432/db",
        "dbname=db",
    ],
)
def test_every_shape_of_libpq_is_taken(dsn: str) -> None:
    settings = parse_dsn(dsn)
    assert settings["application_name"] == "cairnq"
    assert settings["keepalives_idle"] + settings["keepalives_interval"] * settings["keepalives_count"] == 25
    assert settings["tcp_user_timeout"] == 20_000
    assert settings["connect_timeout"] == 5


def test_what_the_url_says_is_not_overridden() -> None:
    settings = parse_dsn("postgresql://host/db?application_name=shop&connect_timeout=30&keepalives_idle=60")
    assert (settings["application_name"], settings["connect_timeout"]) == ("shop", "30")
    assert settings["keepalives_idle"] == "60"
