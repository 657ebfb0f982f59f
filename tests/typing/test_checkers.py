"""The public types, as mypy and pyright understand them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
FILES = {name: HERE / name for name in ("right.py", "wrong.py")}


def mypy(cache: Path) -> set[tuple[str, int]]:
    command = ["-m", "mypy", "--strict", "--config-file=", "--explicit-package-bases", "--output=json"]
    done = run([*command, f"--cache-dir={cache}", *map(str, FILES.values())])
    return {(Path(one["file"]).name, one["line"]) for one in map(json.loads, done.splitlines())}


def pyright(folder: Path) -> set[tuple[str, int]]:
    settings = {
        "include": [str(path) for path in FILES.values()],
        "extraPaths": [str(REPOSITORY)],
        "typeCheckingMode": "strict",
        "reportPrivateUsage": "none",
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    done = run(["-m", "basedpyright", "--outputjson", "-p", str(folder / "pyrightconfig.json")])
    found = json.loads(done)["generalDiagnostics"]
    return {(Path(one["file"]).name, one["range"]["start"]["line"] + 1) for one in found if one["severity"] == "error"}


def run(arguments: list[str]) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def marked() -> set[tuple[str, int]]:
    lines = FILES["wrong.py"].read_text().splitlines()
    return {("wrong.py", number) for number, line in enumerate(lines, 1) if re.search(r"# wrong: ", line)}


@pytest.mark.parametrize(("module", "check"), [("mypy", mypy), ("basedpyright", pyright)])
def test_what_is_right_passes_and_what_is_wrong_is_refused_at_its_line(module, check, tmp_path):
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed (pip install {module})")
    assert len(marked()) >= 15
    assert check(tmp_path) == marked()
