"""The least that can drain our queue: one connection, our statements, no handlers; settle and claim in one round trip.

With `do: pick_up` a second connection listens, and each notification is answered by a claim and nothing else.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

import psycopg

from bench.programs import common
from bench.server import Connection, connect_as_ours
from cairnq.db.statements import Statements

WORKER = "worker_bare_%d"
IDLE_S = 0.02


class Loop:
    def __init__(self, spec: dict[str, Any]) -> None:
        statements = Statements("postgres", "public")
        self._claim, self._settle = statements.get("claim"), statements.get("settle")
        self._limit: int = spec["batch"]
        self._notes = common.Notes(spec["notes"], spec["every"])
        self._worker_id = WORKER % os.getpid()
        wanted = {"queues": ["default"], "worker_id": self._worker_id, "lease_ms": 30_000, "limit": self._limit}
        self._claim_values = self._claim.arrange(wanted)

    def run(self, connection: Connection) -> None:
        ids: set[str] = set()
        while True:
            with connection.pipeline():
                settled = connection.execute(self._settle.text.encode(), self._settled(sorted(ids)))
                claimed = connection.execute(self._claim.text.encode(), self._claim_values)
            ids.difference_update(row[0] for row in settled.fetchall())  # what is left was locked: once more
            rows = claimed.fetchall()
            for _ in rows:
                self._notes.call()
            ids.update(row[0] for row in rows)
            if not ids:
                time.sleep(IDLE_S)

    def pick_up(self, connection: Connection, listening: psycopg.Connection[Any]) -> None:
        for _ in listening.notifies():
            while rows := connection.execute(self._claim.text.encode(), self._claim_values).fetchall():
                now = time.monotonic_ns()
                for row in rows:
                    self._notes.write((now - common.plain(row[4])["at_ns"]) // 1000)

    def _settled(self, ids: list[str]) -> list[Any]:
        count = len(ids)
        outcome = {"outcomes": ["complete"] * count, "bodies": ["null"] * count, "delays_ms": [0] * count}
        return self._settle.arrange({"worker_id": self._worker_id, "ids": ids, "attempts": [1] * count, **outcome})


def main(spec: dict[str, Any]) -> None:
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    loop = Loop(spec)
    with connect_as_ours(spec["dsn"]) as connection:
        if spec["handler"] == "pick_up":
            with psycopg.connect(spec["dsn"], autocommit=True) as listening:
                listening.execute("listen cairnq_queued")
                print("ready", flush=True)
                loop.pick_up(connection, listening)
        else:
            print("ready", flush=True)
            loop.run(connection)


def _end_with_stdin() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(common.given())
