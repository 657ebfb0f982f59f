"""Text for a terminal: nothing that steers it, nothing wider than it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cairnq_supervisor.pure import tabular
from cairnq_supervisor.pure.printable import clip, compact_json, machine_json, printable, printable_lines, width
from cairnq_supervisor.pure.tabular import Column, Table

TEXT = st.text(max_size=60)


@given(TEXT)
def test_what_is_printed_is_printable_and_what_was_printable_stays(text):
    assert printable(text).isprintable()
    if text.isprintable():
        assert printable(text) == text


@pytest.mark.parametrize("raw", ["\x1b[31m", "\x9b31m", "\r", "\x7f", "\u202e", "\u2028", "\ud800", "\x00"])
def test_controls_of_every_kind_are_spelt_out(raw):
    assert raw not in printable(f"a{raw}b")
    assert raw not in machine_json({raw: raw})
    assert raw not in compact_json({"k": raw})


HOSTILE = ["\x1b]0;pwned\x07", "\u202eevil", "a\u200bb", "\u2066x\u2069", "a\u2028ok       database", "x\rok", "\ue000"]


@pytest.mark.parametrize("raw", HOSTILE)
def test_direction_marks_and_what_has_no_width_are_spelt_out(raw):
    assert printable(raw) != raw
    assert printable(raw).isascii()


@given(st.text(st.characters(), max_size=60))
def test_lines_that_follow_cannot_pass_for_lines_of_their_own(text):
    first, *more = printable_lines(text).split("\n")
    assert len(more) == text.count("\n")
    assert all(line.startswith("  ") for line in more)
    assert all(line.isprintable() for line in [first, *more])


@given(st.recursive(st.none() | st.booleans() | st.integers() | TEXT, st.lists, max_leaves=5))
def test_json_for_programs_is_ascii_and_comes_back_equal(value):
    assert machine_json(value).isascii()
    assert json.loads(machine_json(value)) == value


@given(TEXT.map(printable), st.integers(0, 20))
def test_a_clipped_text_fits(text, columns):
    assert width(clip(text, columns)) <= columns


def test_wide_letters_count_twice():
    assert width("队列") == 4
    assert clip("队列队列", 5) == "队列…"


COLUMNS = (Column("id", whole=True), Column("name"), Column("count", right=True, whole=True), Column("says"))


@given(
    st.lists(st.tuples(st.text("t", min_size=31, max_size=31), TEXT, st.integers().map(str), TEXT), max_size=4),
    st.integers(1, 200),
)
def test_a_table_never_outgrows_its_terminal(rows, limit):
    for line in tabular.lines(Table(COLUMNS, rows), limit):
        assert width(line) <= limit


def test_what_does_not_fit_is_shortened_then_left_out_but_ids_stay_whole():
    table = Table(COLUMNS, [("task_0123456789", "a" * 30, "7", "b" * 30)])
    assert tabular.lines(table, None)[1] == f"task_0123456789  {'a' * 30}      7  {'b' * 30}"
    assert tabular.lines(table, 60)[1] == f"task_0123456789  {'a' * 16}…      7  {'b' * 16}…"
    assert tabular.lines(table, 40)[1] == f"task_0123456789  {'a' * 15}…      7"
    assert tabular.lines(table, 25)[1] == "task_0123456789      7"


def test_what_a_row_is_about_is_shown_on_the_narrowest_terminal():
    table = Table(
        [Column("queue"), *(Column(title, whole=True) for title in ("state", "calls"))], [("m" * 20, "ready", "4/8")]
    )
    assert tabular.lines(table, 24)[1] == f"{'m' * 9}…  ready  4/8"
    assert tabular.lines(table, 16)[1] == f"{'m' * 8}…  ready"
    assert tabular.lines(table, 10)[1] == f"{'m' * 9}…"


def test_a_record_stands_in_two_columns():
    assert tabular.record_lines([("id", "x"), ("status", "a\nb")], None) == ["id      x", "status  a\\nb"]


@given(TEXT, st.integers(1, 200))
def test_a_hanging_sentence_keeps_its_words_below_its_beginning(text, limit):
    first, *more = tabular.hanging("fault    queue          ", text, limit)
    assert first.startswith("fault    queue          ")
    assert all(line.startswith(" " * 24) for line in more)
    assert " ".join(line[24:] for line in [first, *more]) == printable(text)
    assert all(width(line) <= max(limit, 24 + width(line[24:].split(" ")[0])) for line in [first, *more] if more)


def test_a_pipe_gets_the_sentence_whole():
    assert tabular.hanging("ok ", "a b c", None) == ["ok a b c"]
    assert tabular.hanging("ok ", "some words of it", 12) == ["ok some", "   words of", "   it"]
