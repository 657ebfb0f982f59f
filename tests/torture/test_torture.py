"""`cairnq torture` itself: real fleets, real faults, and nothing wrong. The seed stands in every failure."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys

import psycopg
import pytest

from tests.process.support import until
from tests.support.figures import figure
from tests.support.routes import is_file

NOBODY = "postgresql://me@127.0.0.1:1/nobody"


async def torture(*arguments, dsn=None, cwd=None):
    """The process of `cairnq torture`, its outputs piped."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CAIRNQ_")}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cairnq_supervisor", "torture", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**environment, **({"CAIRNQ_DSN": dsn} if dsn is not None else {})},
        cwd=cwd,
    )


async def said(process):
    """Exit code, standard output, standard error."""
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


def address(database, tmp_path):
    return f"sqlite:///{tmp_path}/shop.db" if is_file(database) else database


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.sqlite
async def test_a_fleet_under_torture_keeps_every_promise(database, tmp_path):
    seconds = figure(15, 60) if is_file(database) else 60
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    options = ["--seconds", str(seconds), "--seed", str(seed), "--patience", "100", "--json"]
    code, out, err = await said(await torture(*options, dsn=address(database, tmp_path), cwd=tmp_path))
    assert out, (seed, code, err)
    report = json.loads(out)
    broken = [check for check in report["audit"] if check["breaches"]]
    assert (code, broken, report["wrongs"]) == (0, [], []), json.dumps(report, indent=1)
    assert report["seed"] == seed
    # Many more on a machine that does nothing else: most faults wait for the fleet to be whole again.
    assert report["faults"]["injected"] >= 5
    assert report["tasks"]["by_status"]["succeeded"] >= 5
    assert report["tasks"]["called_again"] > 0
    assert left_behind(database, tmp_path) == []


def left_behind(database, tmp_path):
    if is_file(database):
        return [path.name for path in tmp_path.iterdir() if "torture" in path.name]
    with psycopg.connect(database) as connection:
        return connection.execute("select from pg_namespace where nspname like 'cairnq_torture%'").fetchall()


async def test_one_that_is_ended_leaves_nothing_behind(database, tmp_path):
    process = await torture("--seconds", "600", dsn=database, cwd=tmp_path)
    with psycopg.connect(database, autocommit=True) as looking:
        fleet = "select from pg_stat_activity where application_name like 'cairnq_torture%'"
        await until(lambda: len(looking.execute(fleet).fetchall()) >= 5)
        process.send_signal(signal.SIGTERM)
        code, out, err = await said(process)
        assert (code, out) == (130, "")
        assert err.startswith("cairnq: torture of seed ")
        assert len(err.splitlines()) == 1
        await until(lambda: looking.execute(fleet).fetchall() == [])
    assert left_behind(database, tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--seconds", "0"], 64, "'0' is not a whole number from 1 to 86400"),
        (["--restart", "'"], 64, "is not a command"),
        (["--database", "sqlite:///no/such/folder/x.db"], 78, "is no folder in which a file can be made"),
        (["--database", "sqlite:///x.db", "--restart", "true"], 64, "--restart is for a server"),
        (["--database", "postgresql://me:secret@host/db"], 78, "carries a password"),
        (["--database", NOBODY], 75, "refused"),
        (["--database", "postgresql://me@127.0.0.1:99999/nobody"], 78, "no valid host and port"),
        (["--database", "postgresql://["], 78, "does not parse"),
    ],
)
async def test_what_cannot_be_is_said(tmp_path, arguments, code, says):
    ended, out, err = await said(await torture(*arguments, cwd=tmp_path))
    assert (ended, out) == (code, "")
    assert says in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []
