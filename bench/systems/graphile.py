"""graphile-worker: Node, LISTEN; with a local queue and batched completion the fastest of them; it removes rows."""

from __future__ import annotations

from functools import partial

from bench.systems.base import PROGRAMS, Setting, System
from bench.systems.installing import node_peer

_PLAIN = Setting("concurrency 24", 5_500, {"concurrency": 24, "pool": 26}, best=False)
_JOBS = "graphile_worker._private_jobs"

GRAPHILE = System(
    name="graphile-worker",
    install=partial(node_peer, "graphile-worker", PROGRAMS / "graphile.cjs"),
    channel="jobs:insert",
    left=f"select exists (select from {_JOBS})",
    held=f"select count(*) from {_JOBS} where locked_at is not null",
    failed=f"select count(*) from {_JOBS} where last_error is not null",
    settings=(
        Setting(
            "concurrency 24, local queue 500, batched completion",
            65_000,
            {"concurrency": 24, "pool": 26, "local_queue": 500},
        ),
        _PLAIN,
    ),
    waiting=_PLAIN,
    concurrency_of=lambda number: {"concurrency": number, "pool": number + 2, "local_queue": 500},
)
