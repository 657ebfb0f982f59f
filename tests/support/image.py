"""Follows a Dockerfile without Docker: the same steps, with the image's own paths moved below a folder."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

OURS = ("/opt/cairnq", "/opt/src", "/app", "/etc/cairnq", "/run/cairnq")
"""Absolute paths that the image adds to its base; everything else is the base's, as this machine has it."""


class Image:
    """What the Dockerfile says to run, and as whom. `root` holds what it built."""

    def __init__(self, root: Path, context: Path, base_environment: Mapping[str, str]) -> None:
        """`base_environment`: where the base image's interpreter is found here."""
        self.root = root
        self.environment: dict[str, str] = {}
        self.workdir = Path("/")
        self.user = "0:0"
        self.entrypoint: list[str] = []
        self.command: list[str] = []
        self._context = context
        self._base_environment = base_environment

    def path(self, text: str) -> str:
        """The text with the image's own paths moved below `root`."""
        return re.sub(rf"(?<![\w/])({'|'.join(OURS)})\b", lambda match: f"{self.root}{match[1]}", text)

    def build(self, dockerfile: Path) -> None:
        """Take the steps in order."""
        for word, rest in _instructions(dockerfile.read_text()):
            getattr(self, f"_{word.lower()}")(rest)

    def _from(self, _base: str) -> None:
        self.environment, self.workdir = dict(self._base_environment), Path("/")

    def _workdir(self, folder: str) -> None:
        self.workdir = Path(self.path(folder))
        self.workdir.mkdir(parents=True, exist_ok=True)

    def _env(self, pairs: str) -> None:
        for pair in shlex.split(pairs):
            name, _, value = pair.partition("=")
            self.environment[name] = self.path(value)

    def _copy(self, operands: str) -> None:
        *sources, target = self.path(operands).split()
        if sources[0].startswith("--from="):  # an earlier stage, which stands at the same place here
            assert Path(sources[1]).exists(), operands
        else:
            for source in sources:
                _copy(self._context / source, self.workdir / target)

    def _run(self, script: str) -> None:
        subprocess.run(["sh", "-c", self.path(script)], cwd=self.workdir, env=self.environment, check=True, timeout=110)

    def _user(self, user: str) -> None:
        self.user = user

    def _entrypoint(self, words: str) -> None:
        self.entrypoint = json.loads(words)

    def _cmd(self, words: str) -> None:
        self.command = json.loads(self.path(words))

    def _stopsignal(self, name: str) -> None:
        assert name == "SIGTERM", name


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    joined = re.sub(r"\\\n\s*", " ", text)
    for line in joined.splitlines():
        if line.strip() and not line.startswith("#"):
            word, _, rest = line.partition(" ")
            yield word, rest.strip()


def _copy(source: Path, target: Path) -> None:
    """As COPY does: a file into a folder, the content of a folder into a folder of that name."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)
