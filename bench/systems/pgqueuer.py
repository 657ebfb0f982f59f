"""pgqueuer: asyncio, asyncpg, LISTEN; finished jobs leave the queue for a log of their states."""

from __future__ import annotations

from functools import partial

from bench.systems.base import PROGRAMS, Setting, System
from bench.systems.installing import python_peer

_DEFAULT = Setting("batch 10", 10_000, {"batch": 10}, best=False)

PGQUEUER = System(
    name="pgqueuer",
    install=partial(python_peer, "pgqueuer", ("pgqueuer[asyncpg]", "uvloop"), PROGRAMS / "pgqueuer_program.py"),
    channel="ch_pgqueuer",
    left="select exists (select from pgqueuer)",
    held="select count(*) from pgqueuer where status = 'picked'",
    failed="select count(*) from pgqueuer_log where status::text not in ('queued', 'picked', 'successful')",
    settings=(Setting("batch 100", 28_000, {"batch": 100}), _DEFAULT),
    waiting=_DEFAULT,
    concurrency_of=lambda number: {"concurrency": number, "batch": min(100, number // 2)},
)
