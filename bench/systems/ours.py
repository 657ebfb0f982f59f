"""Our program: workers under `cairnq run`, as a host has them, on a configuration written for the run."""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from importlib.metadata import version

from bench.process import Process, started
from bench.systems.base import ROOT, Setting, Work
from bench.systems.installing import Installed
from bench.systems.protocol import ProtocolSystem

DEFAULTS = Setting("defaults", 16_000, {})
BEST = Setting("concurrency 500", 28_000, {"concurrency": 500})
BATCHED = Setting("4 batches of 100", 35_000, {"concurrency": 4, "batch": 100}, best=False)
"""What its handler gets is another thing than what the peers' get, so it is shown, and compared with none."""
FORGET = Setting("concurrency 500, forget=True", 35_000, {"concurrency": 500, "forget": True})


class Ours(ProtocolSystem):
    def workers(self, dsn: str, setting: Setting, work: Work) -> list[Process]:
        """One supervisor with all of them. Its events are lines on its standard output."""
        options = {**setting.options, **work.options}
        concurrency = options.pop("concurrency", None)
        lease = options.pop("lease", None)
        configuration = [
            'app = "bench.programs.ours:app"',
            *([f'lease = "{lease}"'] if lease else []),
            "[queues.default]",
            f"processes = {work.processes}",
            *([f"concurrency = {concurrency}"] if concurrency else []),
        ]
        file = work.notes.parent / "cairnq.toml"
        file.write_text("\n".join(configuration) + "\n")
        spec = {"handler": work.handler, "notes": str(work.notes), "every": work.every, **options}
        argv = [sys.executable, "-m", "bench.programs.supervised", "-c", str(file), "--events-fd", "1"]
        environment = {**self.environment(), "CAIRNQ_DSN": dsn, "BENCH_SPEC": json.dumps(spec)}
        return [started(self.name, argv, environment, _worker_is_ready, work.processes)]


def _worker_is_ready(line: str) -> bool:
    return bool(json.loads(line)["event"] == "worker.ready")


@cache
def _installed() -> Installed:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = (sys.executable, "-m", "bench.programs.ours")
    return Installed(version("cairnq-supervisor"), command, {"PYTHONPATH": path})


OURS = Ours(
    name="ours",
    install=_installed,
    settings=(BEST, DEFAULTS, BATCHED, FORGET),
    waiting=DEFAULTS,
)

STANDALONE = ProtocolSystem(
    name="ours, a standalone worker",
    install=_installed,
    settings=(),
    waiting=Setting("concurrency 10", 8_000, {"concurrency": 10}),
)
"""No supervisor: a program of its own, as the peers' workers are. On our tables."""
