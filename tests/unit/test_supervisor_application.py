"""An application that is none is refused by name."""

import pytest

from cairnq_supervisor.roles.application import ApplicationError, load_registry


@pytest.mark.parametrize("code", [0, 3])
def test_one_that_ends_the_interpreter_does_not_end_the_supervisor_without_a_word(tmp_path, monkeypatch, code):
    name = f"leaving_{code}"
    (tmp_path / f"{name}.py").write_text(f"import sys\n\nsys.exit({code})\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ApplicationError, match=rf"(?s)does not import.*{name}\.py.*SystemExit: {code}"):
        load_registry(f"{name}:registry")
