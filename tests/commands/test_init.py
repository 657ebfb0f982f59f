"""`cairnq init`: what it writes runs as it is, and it writes over nothing."""

from __future__ import annotations

import json
import os
import sys

import pytest

from cairnq_supervisor.config import Flags, load


@pytest.fixture
def own_imports(monkeypatch):
    """What `check` imports is forgotten after the test."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    sys.modules.pop("tasks", None)


def test_the_files_are_there_and_fit_together(cairnq, nowhere, own_imports):
    said = cairnq("init", "shop")
    assert said.code == 0
    assert said.out.splitlines()[:2] == ["shop/cairnq.toml", "shop/tasks.py"]
    settings = load(Flags(config=nowhere / "shop" / "cairnq.toml", database="postgresql://x/y"), {}).settings
    assert [(queue.name, queue.processes) for queue in settings.queues] == [("default", 2)]
    checked = cairnq("check", "-c", "shop/cairnq.toml")
    assert checked.code == 0, checked.out
    assert "runs count_words, greet" in checked.out


def test_nothing_is_overwritten(bare, nowhere):
    (nowhere / "tasks.py").write_text("mine")
    said = bare("init")
    assert said.code == 1
    assert "tasks.py is there already" in said.err
    assert (nowhere / "tasks.py").read_text() == "mine"
    assert not (nowhere / "cairnq.toml").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_named(bare, nowhere):
    nowhere.chmod(0o500)
    said = bare("init", "shop", "--json")
    assert said.code == 1
    assert "shop" in said.err


def test_a_file_in_the_folders_place_is_named(bare, nowhere):
    (nowhere / "shop").write_text("a file")
    said = bare("init", "shop")
    assert said.code == 1
    assert "cannot write" in said.err


def test_json_lists_what_was_written(bare):
    assert json.loads(bare("init", "--json").out) == {"written": ["cairnq.toml", "tasks.py"]}
