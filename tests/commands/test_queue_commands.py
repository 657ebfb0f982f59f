"""submit, get, list, stats, cancel, retry, purge: on a real database, as a person and as a program use them."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from cairnq import CairnQ, Registry, TaskError
from cairnq.pure.models import CONFLICTS, STATUSES, TERMINAL_STATUSES
from cairnq_supervisor.commands import shape

HOSTILE = "evil\x1b[2J\x1b]0;owned\x07\u202ename"


def test_the_words_of_the_command_line_are_those_of_the_sdk():
    assert shape.STATUSES == STATUSES
    assert set(shape.FINISHED) == TERMINAL_STATUSES
    assert shape.CONFLICTS == CONFLICTS


def test_a_task_is_submitted_with_everything_and_read_back(cairnq):
    said = cairnq(
        *("submit", "send_mail", '{"to": "ann"}', "--queue", "mail", "--key", "k", "--priority", "7"),
        *("--max-attempts", "5", "--delay", "1h", "--correlation", "c", "--metadata", '{"m": 1}', "--json"),
    )
    task = json.loads(said.out)
    assert said.code == 0
    assert (task["name"], task["queue"], task["payload"]) == ("send_mail", "mail", {"to": "ann"})
    assert (task["priority"], task["max_attempts"], task["correlation_id"]) == (7, 5, "c")
    assert task["metadata"] == {"m": 1}
    assert task["run_at_ms"] - task["created_at_ms"] == 3_600_000
    assert json.loads(cairnq("get", task["id"], "--json").out) == task
    assert json.loads(cairnq("get", "--key", "k", "--json").out) == task
    shown = cairnq("get", task["id"]).out
    assert 'payload      {"to": "ann"}' in shown
    assert "status       queued" in shown


def test_the_first_word_printed_is_the_id(cairnq):
    said = cairnq("submit", "a")
    assert cairnq("get", said.out.split()[0]).code == 0


def test_the_payload_comes_from_standard_input(cairnq):
    said = cairnq("submit", "a", "-", "--json", stdin='["from", "a", "pipe"]')
    assert json.loads(said.out)["payload"] == ["from", "a", "pipe"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["submit", "a", "word"], "the payload is not JSON"),
        (["submit", "a", "[NaN]"], "NaN is not a JSON value"),
        (["submit", "a", "[" * 100_000], "the payload is not JSON"),
        (["submit", "a", "--metadata", "[1]"], "metadata must be a mapping"),
        (["submit", ""], "name must not be empty"),
        (["submit", "a", r'"\u0000"'], "NUL"),
        (["submit", "a", "--max-attempts", "0"], "'0' is not a whole number from 1"),
        (["submit", "a", "--delay", "soon"], "'soon' is not a duration"),
        (["submit", "a", "--conflict", "maybe"], "invalid choice"),
        (["list", "--status", "lost"], "invalid choice"),
        (["list", "--limit", "-1"], "'-1' is not a whole number"),
        (["purge"], "--older-than"),
        (["get"], "required"),
        (["get", "x", "--key", "y"], "not allowed"),
        (["frobnicate"], "invalid choice: 'frobnicate'"),
    ],
)
def test_what_cannot_be_right_is_a_usage_error_and_writes_nothing(cairnq, arguments, says):
    said = cairnq(*arguments)
    assert said.code == 64
    assert says in said.err
    assert said.out == ""
    assert json.loads(cairnq("stats", "--json").out) == {}


def test_what_is_not_there_is_exit_code_1(cairnq):
    for arguments in (["get", "task_x"], ["get", "--key", "k"], ["cancel", "task_x"], ["retry", "--key", "k"]):
        said = cairnq(*arguments)
        assert said.code == 1, arguments
        assert "no task" in said.err


def test_a_key_that_is_taken_is_exit_code_1_where_it_must_not_be(cairnq):
    assert cairnq("submit", "a", "--key", "k").code == 0
    said = cairnq("submit", "a", "--key", "k", "--conflict", "reject")
    assert (said.code, said.err) == (1, "cairnq: a task already exists under key 'k'\n")


def test_cancel_and_retry_go_back_and_forth(cairnq):
    task = json.loads(cairnq("submit", "a", "--json").out)
    assert cairnq("cancel", task["id"]).out == f"{task['id']} canceled\n"
    again = cairnq("cancel", task["id"])
    assert (again.code, again.err) == (1, f"cairnq: task {task['id']} is canceled: there is nothing to cancel\n")
    assert json.loads(cairnq("retry", task["id"], "--json").out)["status"] == "queued"
    assert cairnq("retry", task["id"]).code == 1


def test_list_filters_and_says_when_there_is_more(cairnq):
    for queue in ("mail", "mail", "gpu"):
        cairnq("submit", "a", "--queue", queue)
    assert len(json.loads(cairnq("list", "--queue", "mail", "--json").out)) == 2
    assert "QUEUE" in cairnq("list").out.splitlines()[0]
    assert "QUEUE" not in cairnq("list", "--queue", "mail").out.splitlines()[0]
    assert cairnq("list", "--status", "failed").out == "no task matches\n"
    assert "more with --limit or --offset 2" in cairnq("list", "--limit", "2").out


def test_stats_count_by_queue(cairnq):
    cairnq("submit", "a", "--queue", "mail")
    table = cairnq("stats").out.splitlines()
    assert table[0].split() == ["QUEUE", "QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELED"]
    assert table[1].split() == ["mail", "1", "0", "0", "0", "0"]
    assert json.loads(cairnq("stats", "mail", "--json").out)["mail"]["queued"] == 1


def test_purge_deletes_finished_tasks_alone_and_no_more_than_asked(cairnq):
    for _ in range(3):
        cairnq("cancel", json.loads(cairnq("submit", "a", "--json").out)["id"])
    cairnq("submit", "a")
    assert json.loads(cairnq("purge", "--older-than", "1h", "--json").out) == {"deleted": 0}
    assert json.loads(cairnq("purge", "--older-than", "0s", "--limit", "2", "--json").out) == {"deleted": 2}
    assert cairnq("purge", "--older-than", "0s").out == "1 finished task(s) deleted\n"
    assert json.loads(cairnq("stats", "--json").out)["default"]["queued"] == 1


def test_nothing_that_steers_a_terminal_is_printed_raw(cairnq):
    task = json.loads(cairnq("submit", HOSTILE, json.dumps({HOSTILE: HOSTILE}), "--queue", HOSTILE, "--json").out)
    assert task["name"] == HOSTILE
    commands = [["list"], ["get", task["id"]], ["stats"], ["list", "--json"], ["get", task["id"], "--json"]]
    for arguments in [*commands, ["submit", "x", "--queue", HOSTILE], ["get", HOSTILE], ["get", "--key", HOSTILE]]:
        said = cairnq(*arguments)
        for raw in ("\x1b", "\x07", "\u202e"):
            assert raw not in said.out + said.err, arguments


def test_a_wait_that_runs_out_is_75_and_says_what_it_is_stuck_in(cairnq):
    said = cairnq("submit", "a", "--wait", "--timeout", "0s")
    assert said.code == 75
    assert "no worker has claimed it" in said.err


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("double", 0, "42\n"),
        ("refuse", 1, "failed: no_such_user: who is that?\n"),
        ("spoil", 1, " failed: odd\\x1b[31m: one\\r\n  task_x succeeded\\u202e\n"),
    ],
)
def test_a_wait_ends_with_the_result_or_with_why_not(cairnq, database, name, code, says):
    with Helping(database):
        said = cairnq("submit", name, "21", "--wait", "--max-attempts", "1")
    assert said.code == code, said.err
    assert said.out.endswith(says)


class Helping:
    """A worker on a thread of its own, for as long as the block."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._work()))

    def __enter__(self) -> None:
        self._thread.start()
        self._ready.wait()

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _work(self) -> None:
        from cairnq import Worker

        registry = Registry()
        registry.register("double", double)
        registry.register("refuse", refuse)
        registry.register("spoil", spoil)
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with CairnQ.postgres(self._database) as client:
            worker = Worker(client.store, ["default"], registry=registry, poll_interval_ms=50)
            async with worker.background():
                self._ready.set()
                await self._stop.wait()


async def double(ctx, payload):
    return payload * 2


async def refuse(ctx, payload):
    raise TaskError("who is that?", code="no_such_user")


async def spoil(ctx, payload):
    raise TaskError("one\r\ntask_x succeeded\u202e", code="odd\x1b[31m")
