"""The commands of a contributor: what they say, and what they refuse."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import hangs, nosleep

ROOT = Path(__file__).parents[2]


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    # A `make` above this one would hand down its flags.
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    return subprocess.run(["make", *arguments], cwd=ROOT, capture_output=True, text=True, check=False, env=environment)


def test_help_names_every_target() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    listed = re.findall(r"^  ([a-z]+) +\S", make("help").stdout, re.MULTILINE)
    assert listed == phony.group(1).split()


def test_make_alone_helps() -> None:
    assert make().stdout == make("help").stdout


def test_stress_without_a_test_says_what_is_missing() -> None:
    refused = make("stress")
    assert refused.returncode != 0
    assert "T is missing" in refused.stderr


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("time.sleep(1)", True),
        ("await asyncio.sleep(delay)", True),
        ("select pg_sleep(1)", True),
        ("await asyncio.sleep(0.05)", True),
        ("await asyncio.sleep(0)", False),
        ("await asyncio.sleep(0.05)  # sleep: the handler's own work", False),
        ("await asyncio.sleep(0.05)  # sleep:", True),
        ("await asleep(worker)", False),
    ],
)
def test_a_test_that_waits_on_time_is_refused(tmp_path: Path, line: str, refused: bool) -> None:
    (tmp_path / "test_x.py").write_text(line)
    assert nosleep.main([str(tmp_path)]) == (1 if refused else 0)


_HANGS = """
import subprocess, threading
def test_hangs():
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE):
        threading.Event().wait()
"""


_TEARDOWN_HANGS = """
import pytest, threading
@pytest.fixture
def stuck():
    yield
    threading.Event().wait()
def test_fails(stuck):
    raise AssertionError("as it should")
"""


def run_pytest(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    """Runs `source` as a test under this project's configuration, with a limit of one second."""
    (folder / "test_hangs.py").write_text(source)
    command = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "--rootdir", ROOT, "-p", "tests.conftest"]
    return subprocess.run(
        [*command, "-p", "no:cacheprovider", "--timeout=1", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_hang_shows_stacks_and_processes(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, _HANGS)
    assert run.returncode == 1
    assert "threading.Event().wait()" in run.stdout
    assert re.search(r"^  \d+ sleeping cpu=0\.\d\ds cat$", run.stdout, re.MULTILINE), run.stdout


def test_a_teardown_that_hangs_after_a_failure_ends_too(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, _TEARDOWN_HANGS)
    assert "as it should" in run.stdout
    assert "1 failed, 1 error" in run.stdout, run.stdout


def test_the_process_tree_shows_children_below_their_parents() -> None:
    with subprocess.Popen(["sh", "-c", "cat; :"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write(b"x")
        shell.stdin.flush()
        shell.stdout.read(1)
        tree = hangs.process_tree()
    assert re.search(rf"^  {shell.pid} .* sh -c cat; :\n    \d+ .* cat$", tree, re.MULTILINE), tree
