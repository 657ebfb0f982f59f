"""What docs/operations.md says, held against the program."""

from __future__ import annotations

import re
from pathlib import Path

from cairnq_supervisor import cli
from cairnq_supervisor.pure import metrics
from cairnq_supervisor.pure.chronicle import Chronicle
from cairnq_supervisor.pure.exits import Exit

TEXT = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
STATUS = {
    "supervisor": {"state": "running"},
    "keeper": {"state": "ready"},
    "queues": [],
    "workers": [],
    "resources": {},
}


def test_the_table_has_every_metric_and_no_other():
    table = TEXT.partition("| metric | labels | |")[2].partition("\n\n")[0]
    names = set()
    for row in table.splitlines():
        prefix = ""
        for name in re.findall(r"`([a-z_]+)`", row.split("|")[1] if "|" in row else ""):
            if name.startswith("cairnq_"):
                prefix = "_".join(name.split("_")[:2])
            names.add(name if name.startswith("cairnq_") else prefix + name)
    there = {family.name for family in metrics.families(STATUS, {}, Chronicle())}
    assert names == there


def test_every_command_is_in_its_table():
    table = TEXT.partition("| command | what it does |")[2].partition("\n\n")[0]
    mentioned = set(re.findall(r"[`, ]([a-z]+)[` \[]", table))
    (commands,) = (action.choices for action in cli._parser()._actions if action.dest == "command")
    assert set(commands) <= mentioned, set(commands) - mentioned


def test_every_exit_code_is_in_its_table():
    table = TEXT.partition("| exit code | meaning |")[2].partition("\n\n")[0]
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)} == {int(code) for code in Exit}
