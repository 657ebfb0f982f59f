"""What a system must offer to be measured: an installation, tables, tasks to fill in, workers and a client."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.process import Process, started
from bench.systems.installing import Installed

PROGRAMS = Path(__file__).parents[1] / "programs"
BULK = 1_000
FILL_S = 120.0
SETUP_S = 60.0
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Setting:
    """One documented way to run a system. `options` go to its program as they are."""

    name: str
    pace: int
    """About how many no-op tasks a second it drains with two processes: sizes its runs, and nothing else."""
    options: Mapping[str, Any] = field(default_factory=dict)
    best: bool = True
    """Whether a quick run, and a workload that takes one setting of each system, measures this one."""


@dataclass(frozen=True, slots=True)
class Work:
    """What workers do with each task (see `handler` of programs/common.py), and where they write it down."""

    notes: Path
    handler: str = "noop"
    every: int = 1
    processes: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    """Beside the setting's, and over them."""


@dataclass(frozen=True, kw_only=True)
class System:
    """A peer: one program that takes one JSON argument and does all of it."""

    name: str
    install: Callable[[], Installed]
    """Raises `Unavailable`."""
    channel: str
    """Where it notifies of new tasks."""
    left: str
    """SQL: whether a task is still to be done."""
    held: str
    """SQL: how many tasks are being worked on."""
    failed: str
    """SQL: how many tasks have ended badly, or will be tried again. None may, or nothing has been measured."""
    settings: Sequence[Setting]
    waiting: Setting
    """For latency, rest and memory: its defaults, where nothing is documented to be better."""
    bulk: bool = True
    """Whether one call submits many tasks."""
    concurrency_of: Callable[[int], Mapping[str, Any]] = field(default=lambda number: {"concurrency": number})
    """The options for so many handler calls at a time."""

    @property
    def best(self) -> Setting:
        return next(setting for setting in self.settings if setting.best)

    def setup(self, dsn: str) -> None:
        """Its tables, in an empty database."""
        argv = self._argv({"do": "setup", "dsn": dsn})
        done = subprocess.run(
            argv, env=self.environment(), cwd=ROOT, capture_output=True, text=True, timeout=SETUP_S, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{self.name} could not make its tables:\n{done.stderr[-2000:]}")

    def fill(self, dsn: str, count: int, size: int) -> None:
        """Queue `count` tasks of `size` bytes, by its own bulk call."""
        asked = {"count": count, "bytes": size, "bulk": max(1, min(BULK, (1 << 22) // size)), "seconds": FILL_S}
        said = self.submit(dsn, **asked)
        if said["count"] < count:
            raise RuntimeError(f"{self.name} queued {said['count']:,} of {count:,} tasks in {FILL_S:.0f} s")

    def submit(self, dsn: str, **asked: Any) -> dict[str, Any]:
        """One client submits; returns `count`, `seconds` and `p50_us`."""
        with self.client(dsn, **asked) as process:
            return self.result(process)

    def client(self, dsn: str, **asked: Any) -> Process:
        """Connected and waiting for `go`."""
        values = {"do": "submit", "dsn": dsn, "bulk": 0, "bytes": 100, "every_ms": 0, **asked}
        return started(self.name, self._argv(values), self.environment(), self._ready)

    @staticmethod
    def result(process: Process) -> dict[str, Any]:
        process.say("go")
        said: dict[str, Any] = json.loads(process.line())
        return said

    def workers(self, dsn: str, setting: Setting, work: Work) -> list[Process]:
        """Ready to claim. Whoever asked ends them."""
        values = {
            "do": "work",
            "dsn": dsn,
            "handler": work.handler,
            "notes": str(work.notes),
            "every": work.every,
            **setting.options,
            **work.options,
        }
        processes: list[Process] = []
        try:
            while len(processes) < work.processes:
                processes.append(started(self.name, self._argv(values), self.environment(), self._ready))
        except BaseException:
            for process in processes:
                process.end()
            raise
        return processes

    def environment(self) -> dict[str, str]:
        return dict(self.install().environment)

    def _argv(self, values: Mapping[str, Any]) -> list[str]:
        return [*self.install().command, json.dumps(values)]

    @staticmethod
    def _ready(line: str) -> bool:
        return line == "ready"
