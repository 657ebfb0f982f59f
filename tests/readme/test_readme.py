"""README's blocks run as they are pasted."""

import json
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()
FILES = dict(re.findall(r"^`([\w.]+)`[^\n]*\n\n```\w+\n(.*?)```", README, re.MULTILINE | re.DOTALL))


@pytest.fixture
def folder(tmp_path):
    """An empty folder in which the reader has pasted the files."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_files_that_the_text_speaks_of_are_there():
    assert set(FILES) == {"tasks.py", "worker.py", "client.py", "cairnq.toml"}


@contextmanager
def running(*command, folder, until=None):
    """A program that has said `until`; it is told to end, and must then end well."""
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as program:
        try:
            while until is not None and until not in program.stderr.readline():
                assert program.poll() is None
            yield
        finally:
            program.send_signal(signal.SIGTERM)
            _, said = program.communicate(timeout=60)
    assert program.returncode == 0, said


def said_by(*command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_worker_and_a_client(folder):
    with running(sys.executable, "worker.py", folder=folder):
        output = said_by(sys.executable, "client.py", folder=folder)
    assert output.splitlines() == ["{'text': 'hello, world'}", "{'text': 'hello, later'}"]


def test_a_host_s_workers_in_one_command(folder):
    cairnq = [sys.executable, "-m", "cairnq_supervisor"]
    with running(*cairnq, "run", folder=folder, until="supervisor.running"):
        output = said_by(*cairnq, "submit", "greet", '{"name": "me"}', "--wait", "--json", folder=folder)
    assert json.loads(output)["result"] == {"text": "hello, me"}


def test_postgres_is_one_word_and_a_url_away(folder, database):
    """README's sentence, applied to README's files."""
    for name in ("worker.py", "client.py"):
        text = (folder / name).read_text()
        assert text.count('.sqlite("cairnq.db"') == 1
        (folder / name).write_text(text.replace('.sqlite("cairnq.db"', f".postgres({database!r}"))
    test_a_worker_and_a_client(folder)
    assert not (folder / "cairnq.db").exists()
