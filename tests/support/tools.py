"""Programs from PyPI that only some tests need, in virtual environments of their own, kept in `.tools/`."""

from __future__ import annotations

import subprocess
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]


class ToolUnavailable(Exception):
    """The package index could not be reached, or does not have it."""


def install(name: str, *requirements: str) -> Path:
    """The `bin` folder of the environment `.tools/name` with these requirements in it, installed once."""
    home = ROOT / ".tools" / name
    stamp = home / "installed"
    wanted = "\n".join(requirements)
    if stamp.exists() and stamp.read_text() == wanted:
        return home / "bin"
    if not (home / "bin" / "python").exists():
        venv.create(home, with_pip=True, symlinks=True)
    command: list[str | Path] = [
        home / "bin" / "python",
        "-I",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--retries=1",
        "--timeout=20",
    ]
    done = subprocess.run([*command, *requirements], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise ToolUnavailable(f"pip could not install {wanted}: {done.stderr.strip().splitlines()[-1]}")
    stamp.write_text(wanted)
    return home / "bin"
