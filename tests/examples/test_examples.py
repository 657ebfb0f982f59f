"""Each example runs by its one command, and what it says of itself is so."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.documents import Reader, blocks_of
from tests.support.routes import is_file

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = REPOSITORY / "examples"


def output_of(example: str, *arguments: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CAIRNQ_", "DATABASE_"))}
    command = [sys.executable, str(EXAMPLES / example), *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, env=kept, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def url(database):
    return f"sqlite:///{database}" if is_file(database) else database


def test_every_example_has_a_test_and_a_page():
    here = Path(__file__).read_text()
    examples = {path.parent.name for path in EXAMPLES.glob("*/__main__.py")} - {"demo"}  # tests/process/test_demo.py
    assert examples == {folder.name for folder in EXAMPLES.iterdir() if (folder / "README.md").exists()} - {"demo"}
    assert all(f'output_of("{example}"' in here for example in examples)


@pytest.mark.sqlite
@pytest.mark.skipif(not (find_spec("fastapi") and find_spec("uvicorn")), reason="fastapi or uvicorn is not installed")
def test_fastapi_submits_and_follows_the_progress(url):
    said = output_of("fastapi", "--database", url)
    states = re.findall(r'^data: {"status": "(\w+)", "progress": ([\d.]+|null)', said, re.MULTILINE)
    assert states[-1] == ("succeeded", "1.0")
    assert states == sorted(states, key=lambda state: (state[0] == "succeeded", state[0] == "running", state[1])), said
    assert "asked again, the same task: True" in said
    assert "1,270,607 primes below 20,000,000" in said


@pytest.mark.sqlite
@pytest.mark.skipif(find_spec("django") is None, reason="django is not installed")
def test_django_has_an_order_and_its_task_in_one_transaction(url):
    assert output_of("django", "--database", url).splitlines() == [
        "rolled back: unicorn is sold out",
        "  0 orders, 0 tasks",
        "placed with 201; the worker says: receipt for teapot",
        "  the shop says: {'article': 'teapot', 'receipt_sent': True}",
    ]


@pytest.mark.sqlite
def test_embeddings_come_in_batches_and_never_two_at_once(url):
    said = output_of("embeddings", "--database", url)
    submitted, embedded, calls = map(int, re.findall(r"^(\d+) texts submitted\n(\d+) embedded; (\d+) calls", said)[0])
    assert submitted == embedded > 100
    assert calls < submitted / 4
    assert "32 texts in the largest, 0 at the same time as another" in said
    assert "nearest to" in said


@pytest.mark.sqlite
def test_files_reports_on_a_folder(url, tmp_path):
    for name, text in {"a.txt": "one\ntwo\n", "b.txt": "one\ntwo\n", "c.py": "pass\n"}.items():
        (tmp_path / name).write_text(text)
    said = output_of("files", "--database", url, str(tmp_path))
    assert "3 files to inspect\n3 files, 21 bytes in" in said
    assert f"the same content:\n    {tmp_path}/a.txt\n    {tmp_path}/b.txt" in said


def test_files_by_hand_as_its_page_has_it(tmp_path):
    folder = shutil.copytree(EXAMPLES / "files", tmp_path / "files")
    with (
        tempfile.TemporaryDirectory(prefix="cq-") as runtime,
        Reader(folder, Path(runtime), replaced={"~/src": str(EXAMPLES / "demo")}) as reader,
    ):
        [by_hand] = [block for block in blocks_of(folder / "README.md") if "submit.py" in block.text]
        reader.do(by_hand)
        reader.run("cairnq drain")
    assert " files to inspect\n" in reader.said
    assert "lines  .py" in reader.said
