"""What `--json` prints, held against the keys that docs/operations.md promises."""

from __future__ import annotations

import json

import pytest

from tests.support.promised import json_keys


def printed(said):
    assert said.code == 0, said.err
    return json.loads(said.out)


def test_a_task_has_the_documented_keys_whoever_prints_it(cairnq):
    task = printed(cairnq("submit", "a", "--json"))
    told = [task, printed(cairnq("get", task["id"], "--json")), *printed(cairnq("list", "--json"))]
    told.append(printed(cairnq("cancel", task["id"], "--json")))
    told.append(printed(cairnq("retry", task["id"], "--json")))
    assert [[each.keys()] for each in told] == [json_keys("`submit`")] * 5


def test_counts_have_the_documented_keys(cairnq):
    cairnq("submit", "a")
    assert [printed(cairnq("stats", "--json"))["default"].keys()] == json_keys("`stats`")
    assert [printed(cairnq("purge", "--older-than", "1d", "--json")).keys()] == json_keys("`purge`")
    assert [printed(cairnq("migrate", "--json")).keys()] == json_keys("`migrate`")


def test_findings_have_the_documented_keys(cairnq):
    for finding in printed(cairnq("doctor", "--json")):
        assert [finding.keys()] == json_keys("`check`")


def test_what_is_written_has_the_documented_keys(bare, nowhere):
    said = [bare("init", "--json"), bare("roles", "--worker", "w", "--json"), bare("completion", "bash", "--json")]
    assert [printed(each).keys() for each in said] == json_keys("`init`")


@pytest.mark.parametrize("command", [["get", "task_x"], ["list"], ["status"], ["scale", "mail", "1"], ["migrate"]])
def test_a_command_that_fails_prints_nothing_on_standard_output(bare, nowhere, command):
    (nowhere / "cairnq.toml").write_text('database = "sqlite:////"\n')
    said = bare(*command, "--json")
    assert said.code in (69, 78)
    assert said.out == ""
    assert said.err.startswith("cairnq: ")
