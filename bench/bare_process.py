"""The least that can pick a task up: `python -m bench.bare_process DSN`, until its stdin closes.

One blocking connection listens, another runs the claim and nothing else. It prints what a worker prints.
"""

from __future__ import annotations

import json
import sys
import threading
import time

import psycopg

from bench.server import connect_as_ours
from cairnq.db.statements import Statements


def main(dsn: str) -> None:
    claim = Statements("postgres", "public").get("claim")
    values = claim.arrange({"queues": ["default"], "worker_id": "worker_bare", "lease_ms": 3_600_000, "limit": 1})
    with psycopg.connect(dsn, autocommit=True) as listening, connect_as_ours(dsn) as claiming:
        listening.execute("listen cairnq_queued")
        claiming.execute(claim.text.encode(), values)
        print("ready", flush=True)
        threading.Thread(target=_end_with_stdin, args=(listening,), daemon=True).start()
        for note in listening.notifies():
            if note.payload == "":
                return
            for row in claiming.execute(claim.text.encode(), values).fetchall():
                print(f"{(time.monotonic_ns() - json.loads(row[4])['at_ns']) / 1000:.0f}", flush=True)


def _end_with_stdin(listening: psycopg.Connection[tuple[object, ...]]) -> None:
    sys.stdin.read()
    with psycopg.connect(listening.info.dsn, autocommit=True) as connection:
        connection.execute("select pg_notify('cairnq_queued', '')")


if __name__ == "__main__":
    main(sys.argv[1])
