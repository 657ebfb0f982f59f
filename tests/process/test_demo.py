"""`make demo`, as somebody sees it who has just cloned the repository."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
DEMO = [sys.executable, str(REPOSITORY / "examples" / "demo")]

OUTCOME = re.compile(r"(\d+) of \1 tasks succeeded in [\d.]+ s, \d+ a second")
RECOVERED = re.compile(r"[1-9]\d* were in the hands of [1-6] worker\(s\) that SIGKILL ended; none was lost")
NO_MORE_THAN = "  22 took more than one attempt"
"""Twenty that fail once, and the two that take their process with them."""


@pytest.fixture
def scratch():
    """A temporary folder with a short path: the demo's control socket goes below it, and has room for 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="cq-") as name:
        yield Path(name)


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CAIRNQ_", "DATABASE_"))}
    return {**kept, **more}


def assert_told(text):
    assert OUTCOME.search(text), text
    assert RECOVERED.search(text), text
    assert " its 0 task" not in text, text
    assert NO_MORE_THAN in text, text
    assert "failed by an exception, and were tried again" in text
    assert "150 files hashed and summarised" in text
    assert "SIGTERM: the fleet drained, exit code 0" in text


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_without_a_terminal_it_shows_plain_lines_and_ends_with_0(scratch, database):
    command = [*DEMO, "--database", database]
    demo = subprocess.run(
        command, cwd=scratch, env=environment(TMPDIR=str(scratch)), capture_output=True, text=True, check=False
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert demo.stderr == ""
    assert "\x1b" not in demo.stdout
    assert len(re.findall(r"^ +[\d.]+ s  files: +\d+ waiting", demo.stdout, re.MULTILINE)) >= 3
    assert_told(demo.stdout)
    assert list(scratch.glob("cairnq-demo-*")) == []


@pytest.mark.slow
def test_on_a_terminal_it_shows_a_table_that_stays_in_place():
    ours, theirs = pty.openpty()
    demo = subprocess.Popen(DEMO, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(TERM="xterm-256color"))
    os.close(theirs)
    seen = bytearray()
    try:
        while piece := os.read(ours, 65_536):
            seen += piece
    except OSError:
        pass  # a terminal whose other end is closed says EIO
    os.close(ours)
    text = seen.decode()
    assert demo.wait() == 0, text
    assert "summaries/0" in text
    assert "\x1b[" in text
    assert_told(text)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_drains_its_fleet_and_leaves_nothing(scratch, number):
    with subprocess.Popen(
        DEMO, env=environment(TMPDIR=str(scratch)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if "is ready" in line:
                break
        demo.send_signal(number)
        _, said = demo.communicate()
    assert demo.returncode == 130
    assert "interrupted; the fleet has drained" in said
    assert list(scratch.iterdir()) == []
