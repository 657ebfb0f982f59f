"""PostgreSQL's text form of arrays; that the server reads it back unchanged is shown in tests/sql."""

import pytest

from cairnq.db.arrays import array_literal


@pytest.mark.parametrize(
    ("items", "literal"),
    [
        ([], "{}"),
        (["a", "b c"], '{"a","b c"}'),
        ([1, -2, None], "{1,-2,null}"),
        (["", "null", "{,}"], '{"","null","{,}"}'),
        (["a", None, "c"], '{"a",null,"c"}'),
        (["a\0b", "c"], '{"a\0b","c"}'),
        (["\0"], '{"\0"}'),
        ([1, 22, 333], "{1, 22, 333}"),
        ([0], "{0}"),
        ([None], "{null}"),
        ([None, None, None], "{null,null,null}"),
        (['say "hi"', "back\\slash", "line\nbreak"], '{"say \\"hi\\"","back\\\\slash","line\nbreak"}'),
    ],
)
def test_an_array_is_written_as_its_literal(items, literal):
    assert array_literal(items) == literal
