"""A database URL says which client is meant; any other text is refused, with what would be right and no password."""

from __future__ import annotations

import pytest

import cairnq
import cairnq.sync
from cairnq import InvalidArgument, InvalidDsn
from cairnq.pure import urls

CLIENTS = [cairnq.CairnQ, cairnq.sync.CairnQ]

REFUSED = {
    "another database": ("mysql://app:hush@host/db", "the scheme 'mysql'"),
    "a driver in the scheme": ("postgresql+psycopg://app:hush@host/db", r"the scheme 'postgresql\+psycopg'"),
    "a path": ("data/hush.db", "no scheme"),
    "nothing": ("", "no scheme"),
    "memory": ("sqlite:///:memory:", "no file that other processes could open"),
    "two slashes": ("sqlite://hush.db", "no file that other processes could open"),
    "no PostgreSQL": ("postgresql://app:hush@host:port/db", "no valid host and port"),
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("url", ["sqlite:///a.db", "sqlite:////tmp/a.db", "postgresql://h/d", "postgres://h", "host=h"])
def test_what_names_a_database_opens_nothing_yet(client, url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    client.at(url, max_queue_depth=3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("name", REFUSED)
def test_what_names_none_is_refused(client, name):
    url, reason = REFUSED[name]
    with pytest.raises(InvalidDsn, match=f"the database URL has {reason}|the database URL names {reason}") as refused:
        client.at(url)
    assert "hush" not in str(refused.value)
    assert "postgresql://user@host" in str(refused.value)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_variable_that_is_not_set_is_told_of(client):
    with pytest.raises(InvalidArgument, match="the database URL must be a string, not NoneType"):
        client.at(None)


def test_a_file_is_named_by_what_follows_three_slashes():
    assert urls.file_of(urls.of_file("data/a b%20c?.db")) == "data/a b%20c?.db"
    assert urls.client_file_of("sqlite:////var/lib/cairnq.db") == "/var/lib/cairnq.db"
    assert urls.client_file_of("postgresql://h/d") is None
