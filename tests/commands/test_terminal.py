"""On a terminal: fitted to its width, in colour with rich and plain without. In a pipe: whole, and cut off quietly."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from cairnq_supervisor.pure import requests
from cairnq_supervisor.pure.printable import width

COLOUR = re.compile(r"\x1b\[[\d;]*m")
WITHOUT_RICH = "import sys; sys.modules['rich'] = None; from cairnq_supervisor.cli import main; sys.exit(main())"


def environment(database, **more):
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    return {**kept, "CAIRNQ_DSN": database, "TERM": "xterm-256color", **more}


def on_terminal(program, arguments, columns, env):
    """What `program` writes to a terminal of so many columns."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([sys.executable, *program, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=env):
        os.close(theirs)
        written = bytearray()
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux's way to say that the other end is closed
                break
            if not piece:
                break
            written += piece
    os.close(ours)
    return written.decode()


@pytest.mark.parametrize("columns", [40, 80, 132])
@pytest.mark.parametrize("how", ["rich", "without rich", "NO_COLOR"])
def test_lines_fit_the_terminal_and_nothing_but_colour_steers_it(cairnq, database, columns, how):
    for name in ("short", "long" * 40, "evil\x1b[2J\x1b[31m", "队列" * 30):
        cairnq("submit", name, '{"text": "' + "word " * 50 + '"}', "--queue", "q" * 40)
    program = ["-c", WITHOUT_RICH] if how == "without rich" else ["-m", "cairnq_supervisor"]
    env = environment(database, **({"NO_COLOR": "1"} if how == "NO_COLOR" else {}))
    task = cairnq("list", "--limit", "1").out.splitlines()[1].split()[0]
    for arguments in (["list"], ["stats"], ["get", task], *([["doctor"]] if columns == 80 else [])):
        text = on_terminal(program, arguments, columns, env)
        plain = COLOUR.sub("", text)
        assert "\x1b" not in plain
        assert (plain != text) is (how == "rich")
        for line in plain.splitlines():
            assert width(line) <= columns, line
    assert task in COLOUR.sub("", on_terminal(program, ["list"], columns, env))


STATUS = {
    "supervisor": {"state": "running", "pid": 1, "started_at": "2026-12-01T12:00:00", "database": "/cairnq.db"},
    "keeper": {"state": "ready", "pid": 2, "leases": 0, "last_beat_ms": None, "listening": True},
    "queues": [],
    "workers": [],
}


@pytest.mark.parametrize(("term", "cleared"), [("xterm-256color", "\x1b[H\x1b[J"), ("dumb", "")])
def test_the_live_view_clears_the_screen_of_a_terminal_that_can(answering, term, cleared):
    there = answering(requests.answered(STATUS))
    text = on_terminal(
        ["-m", "cairnq_supervisor"],
        ["status", "--watch", "--socket", there],
        80,
        {**os.environ, "TERM": term, "NO_COLOR": "1"},
    )
    assert text.startswith(f"{cleared}supervisor  running, pid 1, since 2026-12-01 12:00:00Z")
    assert text.count("\x1b") == cleared.count("\x1b")
    assert text.rstrip().endswith("is `cairnq run` running?"), "it was asked once more, and was gone"


def test_a_reader_that_leaves_is_no_error(cairnq, database):
    for number in range(50):
        cairnq("submit", f"task-{number}", f'"{"x" * 4000}"')
    command = f"{sys.executable} -m cairnq_supervisor list --limit 50 --json | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], env=environment(database), capture_output=True, text=True, check=True
    )
    assert done.stdout == "[\n0\n"
    assert done.stderr == ""


def test_a_reader_that_leaves_hides_no_fault(nowhere):
    command = f"{sys.executable} -m cairnq_supervisor check | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=nowhere, capture_output=True, text=True, check=True)
    assert done.stdout == "78\n"


def test_a_disk_that_is_full_is_said_in_one_line(nowhere):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "cairnq_supervisor", "roles", "--worker", "w"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "cairnq: cannot write the answer: No space left on device\n")


def test_the_program_ends_with_the_commands_exit_code(database):
    done = subprocess.run(
        [sys.executable, "-m", "cairnq_supervisor", "get", "task_x"],
        env=environment(database),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("cairnq: no task has the id 'task_x'")


def test_help_loads_neither_the_sdk_nor_the_driver():
    code = (
        "import sys; from cairnq_supervisor.cli import _parser; _parser().format_help();"
        "print([name for name in sys.modules if name in ('cairnq', 'psycopg', 'asyncio', 'rich')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_help_has_an_example_and_fits_a_small_terminal_but_for_it(bare, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    names = re.findall(r"^ {4}([a-z]+)\b", bare("--help").out, re.MULTILINE)
    assert "roles" in names
    for name in names:
        told, _, example = bare(name, "--help").out.partition("\nexample:\n")
        assert f"cairnq {name}" in example
        assert [line for line in told.splitlines() if len(line) > 80] == [], name


def test_whoever_asks_for_nothing_is_shown_the_commands():
    done = subprocess.run([sys.executable, "-m", "cairnq_supervisor"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (64, "")
    assert "\ncommands:\n" in done.stderr
    assert "examine a running system" in done.stderr
