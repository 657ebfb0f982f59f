"""Runs what a document says, as a reader would: files are pasted, commands are typed into one shell, in order.

What runs is told by the fence and the line before it:

- a line that begins with `` `name` ``: the block is a file of that name;
- ``sh``: commands; each must end with 0, and one that ends in ``&`` goes on in the background;
- ``console``: commands behind ``$``, and lines that must then be said, in that order, where ``…`` stands for anything;
- ``python`` without a name: a program of its own;
- ``<!-- shown by PATH -->``: that test runs it; ``<!-- not ours -->``: somebody else's program;
- anything else is a picture.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

ROOT = Path(__file__).resolve().parents[2]

_BLOCK = re.compile(r"^(?P<before>[^\n]*)\n(?:\n)?```(?P<kind>\w*)[^\n]*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"^`([\w./-]+)`")
_SHOWN = re.compile(r"^<!-- shown by (\S+) -->$")
_END = 'bad=; for job in $(jobs -p); do wait $job || bad="$bad $job:$?"; done; [ -z "$bad" ]'
RUN = frozenset({"sh", "console", "python"})


@dataclass(frozen=True, slots=True)
class Block:
    kind: str
    text: str
    file: str | None
    shown_by: str | None
    is_foreign: bool


def blocks_of(document: Path) -> list[Block]:
    return [_block(match["before"], match["kind"], match["text"]) for match in _BLOCK.finditer(document.read_text())]


def files_of(document: Path) -> dict[str, str]:
    """The files that a reader pastes; of several versions the last."""
    return {block.file: block.text for block in blocks_of(document) if block.file is not None}


def _block(before: str, kind: str, text: str) -> Block:
    file, shown = _FILE.match(before), _SHOWN.match(before)
    return Block(
        kind=kind,
        text=text,
        file=file[1] if file is not None else None,
        shown_by=shown[1] if shown is not None else None,
        is_foreign=before == "<!-- not ours -->",
    )


class Reader:
    """A shell in an empty folder. `replaced`: what stands in the document, and what is typed instead of it."""

    def __init__(self, folder: Path, runtime: Path, *, replaced: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._replaced = replaced or {}
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("CAIRNQ_", "DATABASE_"))}
        script, self._typed = os.pipe()
        self._shell = subprocess.Popen(
            ["bash", f"/dev/fd/{script}"],
            cwd=folder,
            env={
                **kept,
                "PATH": f"{Path(sys.executable).parent}:{kept['PATH']}",
                "XDG_RUNTIME_DIR": str(runtime),
                "PYTHONUNBUFFERED": "1",
                "COLUMNS": "200",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[script],
            start_new_session=True,
            text=True,
        )
        os.close(script)
        self._said: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """What went to the background has been told to end, by the document, and ends well."""
        try:
            if kind is None:
                self.run(_END)
        finally:
            os.killpg(self._shell.pid, signal.SIGTERM)
            os.close(self._typed)
            self._shell.communicate()

    @property
    def said(self) -> str:
        return "".join(self._said)

    def follow(self, document: Path) -> None:
        for block in blocks_of(document):
            self.do(block)

    def do(self, block: Block) -> None:
        text = self._typed_as(block.text)
        if block.shown_by is not None:
            assert (ROOT / block.shown_by).exists(), block.shown_by
        elif block.is_foreign:
            return
        elif block.file is not None:
            (self._folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (self._folder / block.file).write_text(text)
        elif block.kind == "python":
            (self._folder / "block.py").write_text(text)
            self.run("python block.py")
        elif block.kind in RUN:
            for command, expected in _commands(text, prompt="$ " if block.kind == "console" else ""):
                self.run(command, expected)

    def run(self, command: str, expected: Sequence[str] = ()) -> None:
        """Returns when it has ended, or gone to the background, and all that is expected was said, by whomever."""
        awaited, code = list(expected), None
        os.write(self._typed, f'{command}\necho "#ended $?"\n'.encode())
        while code is None or (awaited and code == "0"):
            line = self._hear()
            if (ended := re.fullmatch(r"#ended (\d+)", line)) is not None:
                code = ended[1]
            elif awaited and _is_like(line, awaited[0]):
                del awaited[0]
        assert code == "0", f"{command}: exit {code}; all that was said:\n{self.said}"

    def _hear(self) -> str:
        assert self._shell.stdout is not None
        line = self._shell.stdout.readline()
        assert line, f"the shell has ended; all that was said:\n{self.said}"
        self._said.append(line)
        return line.rstrip("\n")

    def _typed_as(self, text: str) -> str:
        for there, here in self._replaced.items():
            text = text.replace(there, here)
        return text


def _is_like(line: str, expected: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, expected.split("…"))), line) is not None


def _commands(text: str, *, prompt: str) -> Iterator[tuple[str, list[str]]]:
    """Each command with the lines that it is to say. A line that ends in a backslash goes on in the next."""
    command, expected = "", list[str]()
    for line in text.replace("\\\n", " ").splitlines():
        if not line.startswith(prompt):
            expected.append(line)
            continue
        if command:
            yield command, expected
        command, expected = _without_remark(line.removeprefix(prompt)), []
    if command:
        yield command, expected


def _without_remark(line: str) -> str:
    return re.sub(r"\s+# .*$", "", line).strip()
