"""README's files and commands, as a newcomer pastes them: a task crashes and recovers, on SQLite and on PostgreSQL."""

import re
import tempfile
from pathlib import Path

import pytest

from tests.support.documents import ROOT, Reader, blocks_of, files_of
from tests.support.routes import is_file

README = ROOT / "README.md"


@pytest.fixture
def runtime():
    """A folder with a short path, for the control socket."""
    with tempfile.TemporaryDirectory(prefix="cq-") as name:
        yield Path(name)


def test_the_files_that_the_text_speaks_of_are_there():
    assert set(files_of(README)) == {"tasks.py", "worker.py", "client.py", "cairnq.toml"}
    assert sum(block.kind == "sh" and block.shown_by is None for block in blocks_of(README)) == 2


@pytest.mark.sqlite
def test_from_paste_to_a_crashed_and_recovered_task(empty_database, tmp_path, runtime):
    """On SQLite in README's order; on PostgreSQL the supervisor first, as a reader who skips the programs has it."""
    database, blocks = empty_database, blocks_of(README)
    files = [block for block in blocks if block.file is not None]
    commands = [block for block in blocks if block.file is None]
    replaced = {}
    if not is_file(database):
        commands.reverse()
        replaced = {'.sqlite("cairnq.db"': f".postgres({database!r}"}
    with Reader(tmp_path, runtime, replaced=replaced) as reader:
        if not is_file(database):
            reader.run(f"export CAIRNQ_DSN='{database}'")
        for block in files + commands:
            reader.do(block)
    assert "{'text': 'hello, world'}\n{'text': 'hello, later'}\n" in reader.said
    assert '"up again in attempt 2"' in reader.said
    assert "worker_crashed: worker default/" in reader.said
    assert (tmp_path / "cairnq.db").exists() == is_file(database)


def test_the_commands_for_services_are_those_that_their_files_name():
    systemd, kubernetes = (
        next(block.text for block in blocks_of(README) if block.shown_by == f"tests/deploy/test_{name}.py")
        for name in ("systemd", "kubernetes")
    )
    head = (ROOT / "systemd" / "cairnq.service").read_text()
    for line in systemd.replace(" systemd/", " ").splitlines():
        assert f"#   {line.partition('<<<')[0]}" in head
    build, _, push, _, apply = kubernetes.splitlines()
    assert f"#   {build}" in (ROOT / "deploy" / "Dockerfile").read_text()
    name, _, tag = push.removeprefix("docker push ").rpartition(":")
    trial = (ROOT / apply.split()[3] / "kustomization.yaml").read_text()
    assert f"newName: {name}" in trial
    assert f'newTag: "{tag}"' in trial
    for path in re.findall(r"(?<= )(?:systemd|deploy)/[\w@./-]+", systemd + kubernetes):
        assert (ROOT / path).exists(), path
