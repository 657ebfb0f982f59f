"""The command line, called in this process: what it printed and its exit code."""

from __future__ import annotations

import io
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cairnq_supervisor import cli

VARIABLES = ("CAIRNQ_DSN", "CAIRNQ_DATABASE", "CAIRNQ_SCHEMA", "DATABASE_URL", "CREDENTIALS_DIRECTORY")


@dataclass(frozen=True, slots=True)
class Said:
    code: int
    out: str
    err: str


Cairnq = Callable[..., Said]


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder to stand in, with nothing of cairnq's in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def bare(nowhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cairnq:
    """`bare("list", "--json")`: the command line without a database."""

    def call(*arguments: str, stdin: str = "") -> Said:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capsys.readouterr()
        try:
            options = cli._parser().parse_args(arguments)
            code = options.act(options)
        except SystemExit as end:
            code = end.code
        said = capsys.readouterr()
        return Said(int(code), said.out, said.err)

    return call


@pytest.fixture
def cairnq(bare: Cairnq, database: str, monkeypatch: pytest.MonkeyPatch) -> Cairnq:
    """`cairnq("list", "--json")`: the command line on a fresh database with cairnq in it."""

    def call(*arguments: str, stdin: str = "") -> Said:
        monkeypatch.setenv("CAIRNQ_DSN", database)  # each command takes it out of the environment
        return bare(*arguments, stdin=stdin)

    return call


@pytest.fixture
def answering(nowhere: Path) -> Iterator[Callable[[bytes], str]]:
    """`answering(bytes)`: a socket whose one client gets them for whatever it asks."""
    threads: list[threading.Thread] = []

    def start(answer: bytes) -> str:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(nowhere / "s"))
        listener.listen()

        def serve() -> None:
            client, _ = listener.accept()
            with client, listener:
                client.recv(1000)
                client.sendall(answer)

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        return str(nowhere / "s")

    yield start
    for thread in threads:
        thread.join()
