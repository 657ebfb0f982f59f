"""Where the database comes from, and the exit code of each way in which it cannot be used."""

from __future__ import annotations

import json
import os
import shlex
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing

import psycopg
import pytest

from tests.support.cluster import at_port, name_of


def test_without_any_database_the_message_names_the_variable_and_no_file_is_made(bare, nowhere):
    said = bare("list")
    assert said.code == 78
    assert f"there is no database {nowhere}/cairnq.db; set CAIRNQ_DSN" in said.err
    assert list(nowhere.iterdir()) == []


@pytest.mark.parametrize("place", ["file", "dsn_file", "credential", "DATABASE_URL", "flag"])
def test_the_database_comes_from_each_place_that_run_takes_it_from(bare, nowhere, database, monkeypatch, place):
    arguments = []
    if place == "file":
        (nowhere / "cairnq.toml").write_text(f"database = {json.dumps(database)}\n")
    elif place == "dsn_file":
        (nowhere / "secret").write_text(database + "\n")
        (nowhere / "cairnq.toml").write_text('dsn_file = "secret"\n')
    elif place == "credential":
        (nowhere / "dsn").write_text(database + "\n")
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(nowhere))
    elif place == "DATABASE_URL":
        monkeypatch.setenv("DATABASE_URL", database)
    else:
        arguments = ["--database", database]
    said = bare("submit", "a", *arguments)
    assert said.code == 0, said.err


def test_a_password_on_the_command_line_is_refused_and_not_repeated(bare):
    said = bare("list", "--database", "postgresql://me:hunter2@127.0.0.1/x")
    assert said.code == 78
    assert "`ps`" in said.err
    assert "hunter2" not in said.err + said.out


@pytest.mark.parametrize("command", ["list", "check"])
def test_the_url_of_another_kind_of_database_is_refused_by_its_scheme(bare, monkeypatch, command):
    monkeypatch.setenv("CAIRNQ_DSN", "mysql://me:hunter2@db/x")
    said = bare(command)
    assert said.code == 78
    shown = said.err + said.out
    assert 'CAIRNQ_DSN: database has the scheme "mysql"; it must be "postgresql://user@host:5432/name" or' in shown
    assert "hunter2" not in shown


def test_a_file_that_is_not_toml_has_that_fault_alone(bare, nowhere):
    (nowhere / "cairnq.toml").write_bytes(b"\x7fELF\xd0")
    said = bare("check")
    assert said.code == 78
    assert "cairnq.toml: file is not TOML" in said.out
    assert said.out.splitlines()[-1] == "1 fault"


def test_what_the_database_says_is_one_line_without_controls(bare, monkeypatch):
    monkeypatch.setenv("CAIRNQ_DSN", "postgresql://nobody@127.0.0.1:1/x")
    (line,) = bare("list").err.splitlines()
    assert "Connection refused; Is the server running" in line
    assert "\\t" not in line


def test_a_faulty_configuration_names_every_fault(bare, nowhere):
    (nowhere / "cairnq.toml").write_text('databse = "x"\nlease = 5\n')
    said = bare("list")
    assert said.code == 78
    assert "database" in said.err
    assert "lease" in said.err


def test_a_server_that_does_not_answer_is_75(bare, monkeypatch, database):
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused
        monkeypatch.setenv("CAIRNQ_DSN", at_port(database, taken.getsockname()[1]))
        said = bare("stats")
    assert said.code == 75
    assert "refused" in said.err


def test_a_database_that_is_not_there_is_78(bare, monkeypatch, database):
    monkeypatch.setenv("CAIRNQ_DSN", database + "_not")
    said = bare("stats")
    assert said.code == 78
    assert "does not exist" in said.err


@pytest.mark.parametrize("command", [["check"], ["migrate"], ["list"], ["run"]])
def test_a_file_that_can_be_none_is_78_for_every_command(nowhere, command):
    """The filesystem is read-only in the command's own namespace."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    folder = nowhere / "mounted"
    folder.mkdir()
    (nowhere / "tasks.py").write_text("import cairnq\nregistry = cairnq.Registry()\n@registry.task\ndef a(ctx): ...\n")
    configuration = f'app = "tasks:registry"\ndatabase = "sqlite:///{folder}/cairnq.db"\n'
    (nowhere / "cairnq.toml").write_text(configuration)
    with closing(sqlite3.connect(folder / "cairnq.db")) as connection:
        connection.execute("create table other (x)")
    program = shlex.join([sys.executable, "-m", "cairnq_supervisor", *command])
    script = f"mount --bind {folder} {folder} && mount -o remount,bind,ro {folder} && exec {program}"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], cwd=nowhere, capture_output=True, text=True, check=False
    )
    assert done.returncode == 78, done.stderr
    assert "mounted read-only" in done.stdout + done.stderr


@pytest.mark.parametrize("command", [["check"], ["doctor"], ["migrate"], ["list"]])
def test_a_folder_in_the_place_of_a_file_is_78_for_every_command(bare, nowhere, command):
    (nowhere / "cairnq.toml").write_text(f'app = "json:loads"\ndatabase = "sqlite:///{nowhere}"\n')
    said = bare(*command)
    assert said.code == 78
    assert "is a directory: name a file inside it" in said.out + said.err


def test_tables_that_are_not_there_are_76_and_nothing_is_made(bare, monkeypatch, empty_database):
    monkeypatch.setenv("CAIRNQ_DSN", empty_database)
    said = bare("submit", "a")
    assert said.code == 76
    assert "migrat" in said.err
    assert tables(empty_database) == 0


def test_migrate_makes_them_once(bare, monkeypatch, empty_database):
    monkeypatch.setenv("CAIRNQ_DSN", empty_database)
    first = json.loads(bare("migrate", "--schema", "Tasks", "--json").out)
    assert first["schema"] == "Tasks"
    assert first["applied"]
    monkeypatch.setenv("CAIRNQ_DSN", empty_database)
    second = bare("migrate", "--schema", "Tasks")
    assert second.out == "schema Tasks speaks protocol 1: nothing to do\n"
    monkeypatch.setenv("CAIRNQ_DSN", empty_database)
    assert bare("submit", "a", "--schema", "Tasks").code == 0


def test_a_second_installation_beside_the_first_is_76(bare, monkeypatch, server, empty_database):
    monkeypatch.setenv("CAIRNQ_DSN", empty_database)
    assert bare("migrate", "--schema", "elsewhere").code == 0
    monkeypatch.setenv("CAIRNQ_DSN", empty_database)
    said = bare("submit", "a")
    assert said.code == 76
    assert "'elsewhere'" in said.err


def test_a_role_without_rights_is_78(bare, monkeypatch, server, database):
    role = f"reader_{name_of(database)}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f'create role "{role}" login')
    monkeypatch.setenv("CAIRNQ_DSN", database.replace("postgres@", f"{role}@"))
    said = bare("stats")
    assert said.code == 78
    assert "right" in said.err
    assert said.err.endswith("; cairnq roles prints what to grant\n")


def tables(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute("select count(*) from pg_tables where tablename like 'cairnq%'").fetchone()
    assert row is not None
    return int(row[0])


def test_a_database_without_cairnq_is_76_and_the_command_that_helps_is_named(bare, empty_database, monkeypatch):
    monkeypatch.setenv("CAIRNQ_DSN", empty_database)
    said = bare("list")
    assert said.code == 76
    assert said.err.count("cairnq migrate") == 1


def test_without_a_configuration_the_command_that_writes_one_is_named(bare):
    said = bare("check")
    assert said.code == 78
    assert "app is missing; there is no cairnq.toml here: `cairnq init` writes one" in said.out


def test_a_configuration_that_is_not_there_is_named_where_nobody_answers(bare):
    said = bare("status", "-c", "shop.toml")
    assert said.code == 69
    assert "there is no shop.toml" in said.err
