"""Each row of docs/faults.md has a test that is marked with its number, and no mark is of a row that is not there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
ROWS = TESTS.parent / "docs" / "faults.md"


def test_every_row_of_the_list_has_a_test():
    rows = [int(number) for number in re.findall(r"^\| (\d+) \|", ROWS.read_text(), re.MULTILINE)]
    assert rows == list(range(1, len(rows) + 1))
    assert len(rows) >= 26
    marked = {number for file in TESTS.rglob("test_*.py") for number in numbers(ast.parse(file.read_text()))}
    assert marked == set(rows)


def numbers(module: ast.Module) -> Iterator[int]:
    """Of the `fault` marks on the tests of this module."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.fault":
            yield from (ast.literal_eval(keyword.value) for keyword in node.keywords if keyword.arg == "row")
