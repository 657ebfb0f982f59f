"""Forks, signals and the end of a process."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.conftest import TESTS

WARNINGS = ["-W", "error", "-W", "ignore:This process:DeprecationWarning"]  # Python 3.12 on: it forks, and has threads
PROGRAM = [sys.executable, *WARNINGS, "-m", "tests.sync.programs"]


def output_of(name: str, database: str) -> str:
    done = subprocess.run(
        [*PROGRAM, name, database], cwd=TESTS.parent, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["prefork", "closed_before_the_fork", "made_before_the_fork"])
def test_a_client_crosses_a_fork(name, database):
    output_of(name, database)


def test_a_process_that_never_closes_its_client_ends_in_order(database):
    assert output_of("never_closed", database) == "the process is ending, and its database connections are closed\n"


def test_a_signal_that_wakes_nobody_is_seen(database):
    assert output_of("interrupted_unseen", database) == "interrupted\n"


def test_ctrl_c_ends_a_wait_and_not_the_client(database):
    with subprocess.Popen(
        [*PROGRAM, "interrupted", database], cwd=TESTS.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout.readline() == "waiting\n"
        program.send_signal(signal.SIGINT)
        assert program.communicate(timeout=60) == ("queued\n", "")
    assert program.returncode == 0
