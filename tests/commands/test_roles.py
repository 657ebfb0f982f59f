"""`cairnq roles`: SQL that PostgreSQL takes, for roles and schemas of any printable name."""

from __future__ import annotations

import json
import uuid

import psycopg
import pytest

from cairnq.db.statements import quote_identifier


def test_its_sql_gives_what_check_asks_for(bare, database, nowhere, monkeypatch):
    role = f"a 'worker'; -- {uuid.uuid4().hex[:8]} \"ß\""
    (nowhere / "empty.py").write_text(
        "from cairnq import Registry\nregistry = Registry()\nregistry.register('a', print)\n"
    )
    (nowhere / "cairnq.toml").write_text('app = "empty:registry"\nmigrate = false\n')
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"create role {quote_identifier(role)} login".encode())
        connection.execute(bare("roles", "--worker", role).out.encode())
        monkeypatch.setenv("CAIRNQ_DSN", psycopg.conninfo.make_conninfo(database, user=role))
        said = bare("check")
        connection.execute(f"drop owned by {quote_identifier(role)}".encode())
        connection.execute(f"drop role {quote_identifier(role)}".encode())
    assert said.code == 0, said.out
    assert "may do all that is needed" in said.out


def test_a_clients_rights_are_not_a_workers(bare):
    client = bare("roles", "--client", "web", "--schema", "Jobs").out
    assert client.startswith("-- client web\n")
    assert 'grant usage on schema "Jobs" to "web"' in client
    assert "delete" not in client
    assert "result" not in client
    both = json.loads(bare("roles", "--client", "web", "--worker", "w", "--json").out)["sql"]
    assert "-- client web" in both
    assert "-- worker w" in both


@pytest.mark.parametrize(
    "arguments", [[], ["--client", ""], ["--worker", "a\nb"], ["--client", "a", "--schema", "\x1b"]]
)
def test_what_is_no_name_is_refused(bare, arguments):
    said = bare("roles", *arguments)
    assert said.code == 64
    assert said.out == ""
