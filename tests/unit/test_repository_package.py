"""What is built: both packages, and real SQL files where `importlib.resources` looks for them."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib import resources
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SQL = {str(path.relative_to(ROOT / "sql")) for path in (ROOT / "sql").rglob("*.sql")}

_LOOK = """
import sys
sys.path.insert(0, sys.argv[1])
from importlib import resources
import cairnq, cairnq_supervisor
for package in (cairnq, cairnq_supervisor):
    assert package.__path__[0].startswith(sys.argv[1]), package.__path__
with resources.as_file(resources.files("cairnq") / "sql") as sql:
    print(*sorted(str(path.relative_to(sql)) for path in sql.rglob("*.sql")), sep="\\n")
"""


def build(kind: str, source: Path, to: Path) -> Path:
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", to], cwd=source, check=True)
    return next(to.glob("*.whl" if kind == "wheel" else "*.tar.gz"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


def test_the_clone_finds_its_sql_through_the_symlink() -> None:
    assert (ROOT / "cairnq" / "sql").is_symlink()
    assert len(SQL) > 20
    with resources.as_file(resources.files("cairnq") / "sql") as folder:
        assert {str(path.relative_to(folder)) for path in folder.rglob("*.sql")} == SQL


def test_an_installed_wheel_finds_its_sql_and_both_packages(wheel: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", tmp_path, wheel], check=True, capture_output=True)
    # A folder of its own, and -I: what is found is what the wheel carried, not the clone beside it.
    seen = subprocess.run(
        [sys.executable, "-I", "-c", _LOOK, tmp_path], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert set(seen.stdout.split()) == SQL


def test_a_wheel_holds_the_product_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        entry_points = archive.read("cairnq_supervisor-0.1.0.dist-info/entry_points.txt").decode()
    assert {name.split("/")[0] for name in names} == {
        "cairnq",
        "cairnq_supervisor",
        "cairnq_supervisor-0.1.0.dist-info",
    }
    assert {"cairnq/py.typed", "cairnq_supervisor-0.1.0.dist-info/licenses/LICENSE"} <= set(names)
    assert "cairnq = cairnq_supervisor.cli:main" in entry_points


def test_a_wheel_built_from_the_sdist_is_the_same(wheel: Path, tmp_path: Path) -> None:
    sdist = build("sdist", ROOT, tmp_path)
    subprocess.run(["tar", "xzf", sdist, "-C", tmp_path], check=True)
    again = build("wheel", tmp_path / sdist.name.removesuffix(".tar.gz"), tmp_path)
    assert contents(again) == contents(wheel)


def contents(wheel: Path) -> dict[str, int]:
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: entry.CRC for entry in archive.infolist()}
