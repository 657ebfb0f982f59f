"""A statement file that no test names with `@pytest.mark.statement` is found here.

That a test runs what it names is held by the fixture `run_what_is_named`.
"""

from __future__ import annotations

import ast
from pathlib import Path

from cairnq.db.statements import sql_root

HERE = Path(__file__).parent
ROOT = Path(str(sql_root() / "postgres"))
NOT_STATEMENTS = ("fragments", "migrations")


def statements(root: Path) -> set[str]:
    """`claim`, `install/find`: each file below `root` that holds a statement of its own."""
    paths = (path.relative_to(root) for path in root.rglob("*.sql"))
    return {path.with_suffix("").as_posix() for path in paths if path.parts[0] not in NOT_STATEMENTS}


def marked(source: str) -> set[str]:
    """The names in every `pytest.mark.statement(...)` of a test file."""
    return {
        argument.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "statement"
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }


def test_every_statement_file_is_named_by_a_test():
    named = set().union(*(marked(path.read_text()) for path in HERE.glob("test_*.py")))
    assert statements(ROOT) - named == set(), "statement files without a test in tests/sql"
    assert named - statements(ROOT) == set(), "tests that name a statement file which is not there"


def test_a_new_statement_file_would_be_found(tmp_path):
    (tmp_path / "install").mkdir()
    (tmp_path / "fragments").mkdir()
    for name in ("claim.sql", "install/find.sql", "fragments/now_ms.sql"):
        (tmp_path / name).touch()
    assert statements(tmp_path) == {"claim", "install/find"}
    assert marked('@pytest.mark.statement("claim", "beat")\ndef test_it(): ...') == {"claim", "beat"}
