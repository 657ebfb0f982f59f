"""What stands behind a control socket may be anything: a command says what, and never fails over it."""

from __future__ import annotations

import contextlib
import json
import socket

import pytest

from cairnq_supervisor.commands import calling
from cairnq_supervisor.pure import requests
from cairnq_supervisor.pure.requests import VERSION, BadAnswer


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "no supervisor of cairnq"),
        (b"[1]\n", "no supervisor of cairnq"),
        (b"[" * 100_000 + b"\n", "no supervisor of cairnq"),
        (b"\xff\x00\n", "no supervisor of cairnq"),
        (b"", "closed the connection without an answer"),
        (b'{"supervisor": {}}\n', f"in version None of the control socket, this command knows {VERSION}"),
        (b'{"control": 99}\n', f"in version 99 of the control socket, this command knows {VERSION}"),
    ],
)
@pytest.mark.parametrize("command", [["status"], ["status", "--watch"], ["pause", "--json"]])
def test_what_is_no_supervisor_or_another_one_is_69(bare, answering, command, answer, says):
    said = bare(*command, "--socket", answering(answer))
    assert said.code == 69
    assert says in said.err
    assert said.out == ""


def test_a_refusal_of_the_supervisor_is_64(bare, answering):
    said = bare("pause", "x", "--socket", answering(requests.answered({"error": "no queue \x1b[31m'x'"})))
    assert (said.code, said.err) == (64, "cairnq: no queue \\x1b[31m'x'\n")


def test_a_supervisor_whose_line_is_full_is_waited_for_and_not_taken_for_nobody(bare, nowhere, monkeypatch):
    monkeypatch.setattr(calling, "_PATIENCE", 1)
    with socket.socket(socket.AF_UNIX) as busy, contextlib.ExitStack() as line:
        busy.bind("busy.sock")
        busy.listen(0)
        with contextlib.suppress(BlockingIOError):  # the line is full
            while True:
                waiting = line.enter_context(socket.socket(socket.AF_UNIX))
                waiting.setblocking(False)
                waiting.connect("busy.sock")
        said = bare("status", "--socket", "busy.sock")
    assert (said.code, said.out) == (69, "")
    assert "the supervisor at busy.sock accepts nobody" in said.err


def test_an_answer_comes_back_as_it_was():
    document = {"queues": ["a", "\u202e"], "paused": True}
    assert requests.understood(requests.answered(document)) == document
    with pytest.raises(BadAnswer):
        requests.understood(json.dumps(document).encode())


def test_where_there_is_no_configuration_the_message_says_so_and_who_else_answers(bare, nowhere, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(nowhere))
    nobody = bare("status")
    assert nobody.code == 69
    assert "there is no configuration here whose supervisor could be meant: name one with -c" in nobody.err
    with socket.socket(socket.AF_UNIX) as alive, socket.socket(socket.AF_UNIX) as dead:
        alive.bind("cairnq-00000001.sock")
        alive.listen()
        dead.bind("cairnq-00000002.sock")
        said = bare("status").err
    assert f"others answer at {nowhere}/cairnq-00000001.sock: name one with --socket" in said.replace("\n", "")
    assert "cairnq-00000002" not in said
