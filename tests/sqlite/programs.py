"""Processes of a test: a text of Python that writes lines when something has happened, and reads them when told to."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Program:
    """`text` runs as `python -c`; its `print(..., flush=True)` are `read()` here, its `input()` is `tell()`."""

    def __init__(self, text: str, *arguments: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", text, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def read(self) -> str:
        """The next line; fails where the process ended without one."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the program ended with {self._process.wait()}"
        return line.strip()

    def read_all(self) -> list[str]:
        """Every line until its end."""
        assert self._process.stdout is not None
        return [line.strip() for line in self._process.stdout]

    def tell(self, line: str = "") -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """SIGKILL, and gone when this returns."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def end(self) -> int:
        """Wait for its end by itself; returns the exit status."""
        return self._process.wait()

    def close(self) -> None:
        if self._process.poll() is None:
            self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
