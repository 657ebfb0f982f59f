"""A process of the harness: started, ready, spoken to by lines, measured, and ended with all its children."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

import psutil

ROOT = Path(__file__).parents[1]
READY_S = 45.0
LINE_S = 150.0


class ProcessFailed(Exception):
    """It ended, or said nothing for too long; the message has the end of what it wrote to standard error."""


class Process:
    """Use as a context manager, or call `end`."""

    living: ClassVar[set[Process]] = set()
    """Those that have not been ended: none, once a workload is over, unless a step was cut short as it ended them."""

    def __init__(self, name: str, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        self.name = name
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `end`
        self._popen = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=ROOT,
            env={**os.environ, **environment},
        )
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.psutil = psutil.Process(self._popen.pid)
        self.living.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def pid(self) -> int:
        return self._popen.pid

    def line(self, timeout: float = LINE_S) -> str:
        """The next line of standard output. Raises `ProcessFailed`."""
        try:
            line = self._lines.get(timeout=timeout)
        except queue.Empty:
            raise ProcessFailed(f"{self.name} said nothing for {timeout:.0f} s{self.wrote()}") from None
        if line is None:
            raise ProcessFailed(f"{self.name} ended with {self._popen.wait()}{self.wrote()}")
        return line

    def say(self, line: str) -> None:
        assert self._popen.stdin is not None
        self._popen.stdin.write(line + "\n")
        self._popen.stdin.flush()

    def finish(self, timeout: float = READY_S) -> None:
        """Closes its standard input, and waits until it has left by itself."""
        assert self._popen.stdin is not None
        self._popen.stdin.close()
        self._popen.wait(timeout)

    def check(self) -> None:
        """Raises `ProcessFailed` if it has ended."""
        if self._popen.poll() is not None:
            raise ProcessFailed(f"{self.name} ended with {self._popen.returncode}{self.wrote()}")

    def family(self) -> list[psutil.Process]:
        """This process and its descendants."""
        with contextlib.suppress(psutil.NoSuchProcess):
            return [self.psutil, *self.psutil.children(recursive=True)]
        return []

    def end(self) -> None:
        """SIGKILL for all of them: what was measured is measured, and the database goes next."""
        family = self.family()
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._popen.wait()
        psutil.wait_procs(family, timeout=5)
        self._reader.join()
        for stream in (self._popen.stdin, self._popen.stdout, self._errors):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self.living.discard(self)

    def wrote(self) -> str:
        """The end of its standard error, for a message."""
        self._errors.seek(0)
        text = self._errors.read()[-2_000:].strip()
        return f"; it wrote:\n{text}" if text else ""

    def _read(self) -> None:
        assert self._popen.stdout is not None
        for line in self._popen.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)


def started(
    name: str,
    argv: Sequence[str],
    environment: Mapping[str, str],
    ready: Callable[[str], bool],
    count: int = 1,
) -> Process:
    """Once it has printed `count` lines that are `ready`."""
    process = Process(name, argv, environment)
    try:
        while count:
            count -= ready(process.line(READY_S))
    except BaseException:
        process.end()
        raise
    return process
