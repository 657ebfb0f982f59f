"""How handlers note their calls so that the notes outlive them: lines in a file of their process, written at once.

A line that was written stands, whether its process is killed in the next moment or the database is away. Not in the
database itself, then: the evidence must not share the fate of what it is evidence about. The harness brings the lines
into its side table when the run is over.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cairnq.pure.clock import boottime
from cairnq_supervisor.torture.evidence import Run

_SUFFIX = ".calls"


class BlackBox:
    """The file of this process in `folder`, made at the first call: a fork gets one of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._owner = 0
        self._name = ""
        self._fd = -1

    def call(self, ctx: Any) -> Call:
        """Note that a handler runs for `ctx` (a context of either kind) while the `with` block does."""
        with self._lock:
            self._open_once()
            return Call(self, f"{self._name}.{next(self._numbers)}", ctx)

    def write(self, *words: object) -> None:
        with self._lock:
            self._open_once()
            os.write(self._fd, (" ".join(map(str, words)) + "\n").encode())

    def _open_once(self) -> None:
        """The name is more than the pid, which a long run may see twice."""
        if self._owner != os.getpid():
            self._name = f"{os.getpid()}-{os.urandom(4).hex()}"
            path = self._folder / f"{self._name}{_SUFFIX}"
            self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._owner = os.getpid()


class Call:
    """One call of a handler for one task. `mark` now and then says that it still runs, and under which trust."""

    def __init__(self, box: BlackBox, run_id: str, ctx: Any) -> None:
        self.run_id = run_id
        self._box = box
        self._ctx = ctx

    def __enter__(self) -> Self:
        ctx = self._ctx
        self._note("began", ctx.task_id, ctx.attempt, ctx.worker_id, os.getpid())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._note("ended" if error is None else "raised")

    def mark(self) -> None:
        self._note("runs")

    def _note(self, what: str, *facts: object) -> None:
        """The clock first: trust that is found after it was read was there at that moment too."""
        now = boottime()
        trusted = not self._ctx.settled and not self._ctx.lost_lease
        self._box.write(what, self.run_id, repr(now), int(trusted), *facts)


def read(folder: Path) -> list[Run]:
    """The calls of every process that left a file in `folder`."""
    files = sorted(folder.glob("*" + _SUFFIX))
    return [run for file in files for run in calls(file.read_text(encoding="utf-8"))]


def calls(text: str) -> Iterator[Run]:
    """The calls that one process tells of. A last line that its death cut short is left out."""
    found: dict[str, Run] = {}
    for line in text.split("\n")[:-1]:
        match line.split(" "):
            case ["began", run_id, at, trusted, task_id, attempt, worker_id, pid]:
                began = float(at)
                found[run_id] = Run(
                    run_id=run_id,
                    task_id=task_id,
                    attempt=int(attempt),
                    worker_id=worker_id,
                    pid=int(pid),
                    began=began,
                    trusted=began if trusted == "1" else None,
                    ended=None,
                )
            case [("runs" | "ended" | "raised") as what, run_id, at, trusted] if run_id in found:
                run, now = found[run_id], float(at)
                found[run_id] = replace(
                    run,
                    trusted=now if trusted == "1" else run.trusted,
                    ended=now if what == "ended" else run.ended,
                    raised=now if what == "raised" else run.raised,
                )
    yield from found.values()
