"""Peers from PyPI and npm, each in a folder of its own below `.peers/`; the newest is asked for once a day."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".peers" / "bench"
DAY_S = 86_400
LIMIT_S = 300


class Unavailable(Exception):
    """A registry cannot be reached or lacks it, or a program is missing that it needs. The message is one line."""


@dataclass(frozen=True, slots=True)
class Installed:
    version: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


@cache
def python_peer(name: str, requirements: tuple[str, ...], program: Path) -> Installed:
    """The newest release that this Python can run, of the distribution `name`."""
    home = HOME / name
    python = home / "bin" / "python"
    usable = python.exists() and _installed(home)  # a link to a Python that is gone does not exist
    if not usable:
        venv.create(home, with_pip=True, symlinks=True, clear=True)
    if not usable or _old(home):
        pip = [str(python), "-I", "-m", "pip", "install", "--quiet", "--upgrade", "--retries=1", "--timeout=20"]
        _get([*pip, *requirements], home, usable=usable)
    ask = f"from importlib.metadata import version; print(version({name!r}))"
    said = subprocess.run([python, "-I", "-c", ask], check=True, capture_output=True, text=True)
    # -I: neither our folder nor PYTHONPATH, or it might import our `cairnq`.
    return Installed(said.stdout.strip(), (str(python), "-I", str(program)))


@cache
def node_peer(name: str, program: Path) -> Installed:
    """The newest release whose `engines` allow this node: with a range in place of a tag, npm looks for one."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise Unavailable(f"{name} needs node and npm, and this machine has not both")
    home = HOME / name
    package = home / "node_modules" / name / "package.json"
    usable = package.exists() and _installed(home)
    if not usable or _old(home):
        home.mkdir(parents=True, exist_ok=True)
        (home / "package.json").write_text('{"private": true}\n')
        _get([npm, "install", "--prefix", str(home), "--no-audit", "--no-fund", f"{name}@*"], home, usable=usable)
    said = subprocess.run([node, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    version = json.loads(package.read_text())["version"]
    environment = {"NODE_PATH": str(home / "node_modules"), "NODE_ENV": "production"}
    return Installed(f"{version}, node {said.removeprefix('v')}", (node, str(program)), environment)


def _installed(home: Path) -> bool:
    return (home / "installed").exists()


def _old(home: Path) -> bool:
    return time.time() - (home / "installed").stat().st_mtime >= DAY_S


def _get(command: Sequence[str], home: Path, *, usable: bool) -> None:
    """What is there already is good enough where a registry is away."""
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=LIMIT_S, cwd=home, env=dict(os.environ)
        )
    except subprocess.TimeoutExpired:
        wrong = f"no answer in {LIMIT_S} s"
    else:
        said = [line for line in done.stderr.splitlines() if line.strip() and "log of this run" not in line]
        lines = said or [f"exit code {done.returncode}"]
        wrong = "" if done.returncode == 0 else lines[0 if Path(command[0]).name == "npm" else -1]
    if wrong and not usable:
        raise Unavailable(f"{home.name} could not be installed: {wrong}")
    if not wrong:
        (home / "installed").touch()
