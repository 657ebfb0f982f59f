"""A row of `task_columns` becomes a task like any other."""

from __future__ import annotations

import dataclasses
import json
import pickle

import pytest

from cairnq.pure.models import Task
from cairnq.store import rows

ROW = (
    *("task_1", "mail.send", "default", "running", '{"to": ["a", 1, 2.5, null, true]}', None, None, "{}"),
    *(None, "half way", 1, 3, -5, "worker_1", 1_700_000_000_000, 1_600_000_000_000),
    *(None, None, "task_1", "corr", 1_500_000_000_000, 1_500_000_000_001, None),
)


def test_a_row_becomes_a_frozen_task() -> None:
    task = rows.task(ROW)
    columns = list(ROW)
    columns[4], columns[7] = {"to": ["a", 1, 2.5, None, True]}, {}
    made = Task(*columns)  # type: ignore[arg-type]
    assert type(task) is Task
    assert task == made
    assert dataclasses.asdict(task) == dataclasses.asdict(made)
    assert repr(task) == repr(made)
    assert pickle.loads(pickle.dumps(task)) == task
    assert dataclasses.replace(task, attempt=2).attempt == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        task.attempt = 2  # type: ignore[misc]
    assert not hasattr(task, "__dict__")


@pytest.mark.parametrize(
    "text",
    [
        "null",
        "0",
        "-0",
        "1e400",
        "123456789012345678901234567890",
        "1" * 5000,
        '"\\u00e9"',
        " [1 , 2] ",
        "[" * 5000 + "]" * 5000,
    ],
    ids=lambda text: text[:12],
)
def test_json_is_read_as_everywhere_else(text: str) -> None:
    task = rows.task((*ROW[:5], text, *ROW[6:]))
    expected = rows.decode(text)
    while isinstance(expected, list) and len(expected) == 1:  # == recurses
        expected, task = expected[0], dataclasses.replace(task, result=task.result[0])
    assert task.result == expected
    assert type(task.result) is type(expected)


@pytest.mark.parametrize("text", ["", " ", "{", "[1,]", "nul", "1 2", '{"a" 1}'])
def test_what_is_no_json_is_told_as_everywhere_else(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        rows.task((*ROW[:4], text, *ROW[5:]))
