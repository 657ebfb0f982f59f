"""`cairnq doctor` on systems that are not well: it names what is wrong and what to do."""

from __future__ import annotations

import json
from importlib import metadata

import psycopg
import pytest

from cairnq.db.statements import quote_identifier
from cairnq_supervisor.pure.findings import Verdict
from tests.support.roles import role_of


def findings(said):
    return {finding["topic"]: finding for finding in json.loads(said.out)}


def faults(said):
    return {topic for topic, finding in findings(said).items() if finding["verdict"] == Verdict.FAULT}


def test_a_system_that_is_well_has_no_fault(cairnq):
    said = cairnq("doctor", "--json")
    assert said.code == 0, said.out
    assert faults(said) == set()
    assert findings(said)["notifications"]["verdict"] == Verdict.OK


def test_a_role_that_may_not_read_the_tables_is_told_so(bare, database, monkeypatch):
    with role_of(database, "client") as dsn, psycopg.connect(database, autocommit=True) as connection:
        role = quote_identifier(psycopg.conninfo.conninfo_to_dict(dsn)["user"])
        connection.execute(f"revoke select on cairnq_tasks from {role}".encode())
        monkeypatch.setenv("CAIRNQ_DSN", dsn)
        said = bare("doctor", "--json")
    assert said.code == 78
    assert faults(said) == {"rights"}


def test_a_disabled_trigger_is_a_fault(cairnq, database):
    with psycopg.connect(database) as connection:
        connection.execute("alter table cairnq_tasks disable trigger cairnq_tasks_notify")
    said = cairnq("doctor", "--json")
    assert said.code == 1
    assert faults(said) == {"trigger"}
    assert "enable trigger" in findings(said)["trigger"]["advice"]


def test_autovacuum_turned_off_is_a_fault(cairnq, database):
    with psycopg.connect(database) as connection:
        connection.execute("alter table cairnq_tasks set (autovacuum_enabled = false)")
    assert faults(cairnq("doctor", "--json")) == {"vacuum"}


def test_a_ledger_of_a_newer_sdk_is_reported_and_no_fault(cairnq, database):
    with psycopg.connect(database) as connection:
        connection.execute("insert into cairnq_migrations values ('0099_from_the_future.sql', 0)")
    said = cairnq("doctor", "--json")
    assert said.code == 0
    assert "0099_from_the_future.sql" in findings(said)["migrations"]["says"]


def test_finished_tasks_of_last_month_call_for_retention(cairnq, database):
    task = json.loads(cairnq("submit", "a", "--json").out)
    cairnq("cancel", task["id"])
    with psycopg.connect(database) as connection:
        connection.execute("update cairnq_tasks set completed_at_ms = completed_at_ms - 40 * 86400000::bigint")
    assert findings(cairnq("doctor", "--json"))["retention"]["verdict"] == Verdict.WARNING


def test_a_pooler_is_seen_and_wants_a_way_around_it(bare, database, pooler, monkeypatch):

    monkeypatch.setenv("CAIRNQ_DSN", pooler.dsn(database))
    said = bare("doctor", "--json")
    assert said.code == 78
    assert faults(said) == {"pooler", "notifications"}
    monkeypatch.setenv("CAIRNQ_DSN", pooler.dsn(database))
    monkeypatch.setenv("CAIRNQ_LISTEN_DATABASE", database)
    said = bare("doctor", "--json")
    assert said.code == 0, said.out
    assert "goes around it" in findings(said)["pooler"]["says"]


def test_no_tables_is_76(bare, empty_database, monkeypatch):
    monkeypatch.setenv("CAIRNQ_DSN", empty_database)
    said = bare("doctor")
    assert said.code == 76
    assert "cairnq migrate" in said.out


@pytest.mark.parametrize(("stop", "code"), [("90s", 0), ("10s", 1), ("soon", 1)])
def test_a_manifests_grace_is_held_against_the_drain(cairnq, monkeypatch, stop, code):
    monkeypatch.setenv("CAIRNQ_STOP_TIMEOUT", stop)
    said = cairnq("doctor", "--json")
    assert said.code == code
    assert faults(said) == ({"stop time-out"} if code else set())


def test_the_other_sdk_in_the_same_environment_is_a_fault(cairnq, tmp_path, monkeypatch):
    other = tmp_path / "site" / "cairnq-0.10.0.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: cairnq\nVersion: 0.10.0\n")
    monkeypatch.syspath_prepend(str(other.parent))
    assert metadata.version("cairnq") == "0.10.0"
    said = cairnq("doctor", "--json")
    assert said.code == 1
    assert faults(said) == {"installation"}
