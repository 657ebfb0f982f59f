"""SQL files become statements: parameters numbered, variants chosen, fragments and schema written in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cairnq.db import statements
from cairnq.db.statements import Statements, quote_identifier, quote_literal

Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """`write(name="text", ...)`: files of a dialect of this test's own, called `test`."""
    monkeypatch.setattr(statements, "sql_root", lambda: tmp_path)
    monkeypatch.setitem(statements._MARKS, "test", "$")
    statements._source.cache_clear()
    statements._fragment.cache_clear()
    (tmp_path / "test" / "fragments").mkdir(parents=True)

    def write(**files: str) -> None:
        for name, text in files.items():
            (tmp_path / "test" / f"{name.replace('__', '/')}.sql").write_text(text)

    return write


def test_parameters_are_numbered_in_order_of_appearance(write: Write) -> None:
    write(s="select :b::text, :a, :b::int[] -- a :comment with ':quotes\nwhere x::text = :a")
    statement = Statements("test", None).get("s")
    assert statement.text == "select $1::text, $2, $1::int[]\nwhere x::text = $2"
    assert statement.parameters == ("b", "a")
    assert statement.arrange({"a": 1, "b": 2, "unused": 3}) == [2, 1]
    with pytest.raises(KeyError):
        statement.arrange({"a": 1})


def test_a_variant_keeps_and_leaves_out_lines(write: Write) -> None:
    write(s="select 1\n    and a = :a -- if a\n    and b = :b -- if b\n    skip locked -- unless a\n")
    texts = {conditions: Statements("test", None).get("s", conditions).text for conditions in [(), ("a",), ("a", "b")]}
    assert texts == {
        (): "select 1\n    skip locked",
        ("a",): "select 1\n    and a = $1",
        ("a", "b"): "select 1\n    and a = $1\n    and b = $2",
    }


def test_each_variant_is_rendered_once(write: Write) -> None:
    write(s="select ^what -- if a")
    rendered = Statements("test", None)
    assert rendered.get("s", ["a", "b"], {"what": "1"}) is rendered.get("s", ("b", "a"), {"what": "1"})
    assert rendered.get("s", ["a"], {"what": "2"}).text == "select 2"


def test_tables_are_qualified_and_nothing_else_is(write: Write) -> None:
    write(
        s="insert into cairnq_tasks as t select 'cairnq_tasks', x.cairnq_tasks, cairnq_tasks_id from cairnq_task_keys",
        fragments__one="t.id, t.name",
    )
    text = Statements("test", 'My "schema"').get("s").text
    assert text == (
        'insert into "My ""schema""".cairnq_tasks as t '
        'select \'cairnq_tasks\', x.cairnq_tasks, cairnq_tasks_id from "My ""schema""".cairnq_task_keys'
    )


@pytest.mark.parametrize("schema", [":name", "@fragment", "^literal", "-- if a", "a\\1b", "$1", "cairnq_tasks"])
def test_a_schema_of_any_name_is_only_a_name(write: Write, schema: str) -> None:
    write(s="select :a::text from cairnq_tasks t\nwhere true")
    statement = Statements("test", schema).get("s")
    assert statement.text == f'select $1::text from "{schema}".cairnq_tasks t\nwhere true'
    assert statement.parameters == ("a",)


def test_a_literal_is_written_in_as_it_is(write: Write) -> None:
    write(s="select ^status, :a")
    statement = Statements("test", None).get("s", (), {"status": quote_literal("it's :a ^x @y \\1")})
    assert statement.text == "select 'it''s :a ^x @y \\1', $1"
    assert statement.parameters == ("a",)


def test_fragments_are_written_in(write: Write) -> None:
    write(s="select @columns, @now from x", fragments__columns="a, :b\n", fragments__now="now()")
    assert Statements("test", None).get("s").text == "select a, $1, now() from x"


def test_an_unknown_statement_is_no_silence() -> None:
    with pytest.raises(FileNotFoundError):
        Statements("postgres", None).get("no such statement")


@pytest.mark.parametrize("name", ["plain", 'with "quotes"', "MixedCase", "'", "é; drop table x; --"])
def test_quoting_doubles_what_would_end_it(name: str) -> None:
    assert quote_identifier(name)[1:-1].replace('""', '"') == name
    assert quote_literal(name)[1:-1].replace("''", "'") == name


def test_migrations_come_in_the_order_of_their_names() -> None:
    names = [name for name, _ in statements.migrations("postgres")]
    assert names == sorted(names)
    assert len(names) == len(set(names)) >= 3
