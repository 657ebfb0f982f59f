"""procrastinate: asyncio, psycopg, LISTEN; finished jobs are kept, as ours are."""

from __future__ import annotations

from functools import partial

from bench.systems.base import PROGRAMS, Setting, System
from bench.systems.installing import python_peer

_DEFAULT = Setting("concurrency 10, pool 10", 1_100, {"concurrency": 10, "pool": 10}, best=False)

PROCRASTINATE = System(
    name="procrastinate",
    install=partial(
        python_peer,
        "procrastinate",
        ("procrastinate", "psycopg[binary]", "uvloop"),
        PROGRAMS / "procrastinate_program.py",
    ),
    channel="procrastinate_any_queue_v1",
    left="select exists (select from procrastinate_jobs where status in ('todo', 'doing'))",
    held="select count(*) from procrastinate_jobs where status = 'doing'",
    failed="select count(*) from procrastinate_jobs where status not in ('todo', 'doing', 'succeeded')",
    settings=(Setting("concurrency 64, pool 20", 1_200, {"concurrency": 64, "pool": 20}), _DEFAULT),
    waiting=_DEFAULT,
    concurrency_of=lambda number: {"concurrency": number, "pool": 20},
)
