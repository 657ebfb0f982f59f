"""`cairnq check` before a deploy: every fault on a line, the exit code of the first, and nothing changed."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys

import psycopg
import pytest

from cairnq.db.statements import quote_identifier
from cairnq_supervisor.pure.findings import Verdict
from tests.support.cluster import name_of
from tests.support.roles import role_of

APP = """
from cairnq import Registry

registry = Registry(resources={"gpu": 1})

@registry.task
async def resize(ctx, payload): ...

@registry.task("send_mail")
async def send(ctx, payload): ...
"""


@pytest.fixture
def project(nowhere, monkeypatch):
    """A folder with an application and a configuration that fit together."""
    (nowhere / "shop_tasks.py").write_text(APP)
    write(nowhere, 'app = "shop_tasks:registry"\n[queues.mail]\nhandlers = ["send_mail"]\n[queues.default]\n')
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield nowhere
    sys.modules.pop("shop_tasks", None)


def write(folder, text):
    (folder / "cairnq.toml").write_text(text)


def verdicts(said):
    return {finding["topic"]: finding["verdict"] for finding in json.loads(said.out)}


def test_a_deploy_that_would_go_well_is_all_ok(project, cairnq):
    said = cairnq("check", "--json")
    assert said.code == 0, said.out
    assert set(verdicts(said).values()) == {Verdict.OK}
    lines = cairnq("check").out.splitlines()
    assert any("mail: 1 process(es) of 10, runs send_mail" in line for line in lines)
    assert any("default: 1 process(es) of 10, runs resize, send_mail" in line for line in lines)
    assert lines[-1] == f"{len(lines) - 1} ok"


def test_every_fault_of_the_configuration_has_its_line(project, cairnq):
    write(project, 'app = "nothing"\nlease = 5\n[queues.mail]\nprocesses = 0\n')
    said = cairnq("check")
    assert said.code == 78
    assert len([line for line in said.out.splitlines() if line.startswith("fault")]) == 3


@pytest.mark.parametrize(
    ("app", "says"),
    [
        ("shop_tasks:registri", "has no 'registri'"),
        ("shop_task:registry", "No module named 'shop_task'"),
        ("shop_tasks:APP", "has no 'APP'"),
    ],
)
def test_an_application_that_does_not_import_is_78_and_the_database_is_still_looked_at(project, cairnq, app, says):
    write(project, f'app = "{app}"\n')
    said = cairnq("check")
    assert said.code == 78
    assert says in said.out
    assert "ok       database" in said.out


@pytest.mark.parametrize("hostile", ["a\nok       database", "\x1b[31m", "\u202eevil", "\u200b", "'\""])
def test_names_of_any_kind_make_no_line_and_steer_no_terminal(project, cairnq, hostile):
    quoted = json.dumps(hostile)
    write(project, f'app = "shop_tasks:registry"\n[queues.{quoted}]\n[queues.{quoted[:-1]}2"]\nhandlers = [{quoted}]\n')
    said = cairnq("check")
    assert said.code == 78
    *lines, summary = said.out.splitlines()
    assert all(line.isprintable() for line in lines)
    assert [line.split()[:2] for line in lines].count(["ok", "database"]) == 1
    assert summary == f"{len(lines) - 1} ok, 1 fault"


def test_a_traceback_stands_below_its_fault(project, cairnq):
    (project / "shop_tasks.py").write_text("raise ValueError('x\\nok       application    fine\\x1b[31m')")
    said = cairnq("check")
    assert said.code == 78
    assert "  ok       application    fine\\x1b[31m" in said.out.splitlines()


def test_a_handler_that_nobody_registered_is_78(project, cairnq):
    write(project, 'app = "shop_tasks:registry"\n[queues.mail]\nhandlers = ["send_male"]\n')
    said = cairnq("check")
    assert said.code == 78
    assert "'send_male', which is not registered" in said.out


@pytest.mark.parametrize("preload", ["true", "false"])
def test_a_limit_below_what_a_worker_takes_is_78_and_one_above_is_fine(project, cairnq, preload):
    def checked(max_rss):
        config = f'app = "shop_tasks:registry"\npreload = {preload}\n[queues.mail]\nmax_rss = "{max_rss}MiB"\n'
        write(project, config)
        return cairnq("check")

    said = checked(1)
    assert said.code == 78
    (booted,) = re.findall(r"max_rss is 1\.0 MiB, but a worker takes (\d+)\.\d MiB when it has booted", said.out)
    assert checked(int(booted) + 2).code == 78, "it would be passed with the first calls"
    assert checked(int(booted) + 50).code == 0


def test_an_address_that_another_program_has_is_78_and_a_free_one_is_fine(project, cairnq):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        write(project, f'app = "shop_tasks:registry"\nhttp = "{where}"\n')
        said = cairnq("check")
        assert said.code == 78
        assert f"cannot listen on {where}: [Errno 98] Address already in use; free it" in said.out
    said = cairnq("check", "--json")
    assert said.code == 0, said.out
    assert verdicts(said)["http"] == Verdict.OK


def test_a_queue_that_may_grow_is_counted_at_its_largest(project, cairnq):
    write(project, 'app = "shop_tasks:registry"\n[queues.mail]\nprocesses = {min = 1, max = 4}\n')
    assert "6 at rest, 42 at most, on this host, 12 more while suspects run alone" in cairnq("check").out


@pytest.mark.parametrize("preload", ["true", "false"])
def test_what_the_application_prints_when_it_is_imported_is_no_part_of_the_answer(project, database, preload):
    (project / "shop_tasks.py").write_text(APP + "\nprint('hello')\n")
    write(project, f'app = "shop_tasks:registry"\npreload = {preload}\n')
    done = subprocess.run(
        [sys.executable, "-m", "cairnq_supervisor", "check", "--json"],
        env={**os.environ, "CAIRNQ_DSN": database},
        capture_output=True,
        text=True,
        check=True,
    )
    assert {finding["verdict"] for finding in json.loads(done.stdout)} == {Verdict.OK}
    assert "hello" in done.stderr


def test_an_empty_database_is_fine_where_the_first_start_may_make_the_tables(
    project, bare, empty_database, monkeypatch
):
    monkeypatch.setenv("CAIRNQ_DSN", empty_database)
    said = bare("check")
    assert said.code == 0, said.out
    assert "the first start makes or migrates the tables" in said.out
    with psycopg.connect(empty_database) as connection:
        assert connection.execute("select from pg_tables where tablename like 'cairnq%'").fetchall() == []


def test_an_empty_database_is_76_where_migrate_is_off(project, bare, empty_database, monkeypatch):
    write(project, 'app = "shop_tasks:registry"\nmigrate = false\n')
    monkeypatch.setenv("CAIRNQ_DSN", empty_database)
    said = bare("check")
    assert said.code == 76
    assert "run cairnq migrate" in said.out


def test_a_pooler_without_a_way_around_it_is_78_and_one_with_is_fine(project, bare, database, pooler, monkeypatch):
    monkeypatch.setenv("CAIRNQ_DSN", pooler.dsn(database))
    said = bare("check", "--json")
    assert said.code == 78
    assert [topic for topic, verdict in verdicts(said).items() if verdict == Verdict.FAULT] == ["pooler"]
    monkeypatch.setenv("CAIRNQ_DSN", pooler.dsn(database))
    monkeypatch.setenv("CAIRNQ_LISTEN_DATABASE", database)
    said = bare("check", "--json")
    assert said.code == 0, said.out
    assert "goes around it" in said.out


def test_rights_that_are_missing_are_named(project, bare, database, monkeypatch):
    role = f"worker_{name_of(database)}"
    monkeypatch.setenv("CAIRNQ_DSN", database.replace("postgres@", f"{role}@"))
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f'create role "{role}" login')
        connection.execute(f'grant select on all tables in schema public to "{role}"')
        connection.execute(f'grant insert, update on cairnq_tasks to "{role}"')
        said = bare("check")
        connection.execute(f'drop owned by "{role}"')
        connection.execute(f'drop role "{role}"')
    assert said.code == 78
    assert "lacks delete on cairnq_tasks, insert on cairnq_task_keys, update on cairnq_task_keys" in said.out


def test_the_duty_of_retention_takes_rights_of_its_own(project, bare, database, monkeypatch):
    plain = 'app = "shop_tasks:registry"\nmigrate = false\n'
    with role_of(database, "worker") as dsn, psycopg.connect(database, autocommit=True) as connection:
        role = psycopg.conninfo.conninfo_to_dict(dsn)["user"]
        connection.execute(f"revoke insert on cairnq_meta from {quote_identifier(role)}".encode())
        for config, code in ((plain, 0), (plain + '[retention]\nsucceeded = "1d"\n', 78)):
            write(project, config)
            monkeypatch.setenv("CAIRNQ_DSN", dsn)
            said = bare("check")
            assert said.code == code, said.out
    assert "lacks insert on cairnq_meta; see cairnq roles --worker" in said.out


def test_a_clients_role_lacks_what_a_worker_needs(project, bare, database, monkeypatch):
    with role_of(database, "client") as dsn:
        monkeypatch.setenv("CAIRNQ_DSN", dsn)
        said = bare("check")
    assert said.code == 78
    assert "lacks delete on cairnq_tasks, update on cairnq_task_keys, update on cairnq_tasks" in said.out


def test_more_workers_than_connections_is_78(project, cairnq):
    write(project, 'app = "shop_tasks:registry"\n[queues.mail]\nprocesses = 256\n')
    said = cairnq("check", "--json")
    assert said.code == 78
    assert verdicts(said)["connections"] == Verdict.FAULT


def test_a_database_that_does_not_answer_is_75(project, bare, monkeypatch):
    monkeypatch.setenv("CAIRNQ_DSN", "postgresql://nobody@127.0.0.1:1/x")
    said = bare("check", "--json")
    assert said.code == 75
    assert verdicts(said)["database"] == Verdict.FAULT
    assert verdicts(said)["application"] == Verdict.OK
