"""The tests' own pooler: one that has died costs one test."""

from __future__ import annotations

import os
import signal

import psycopg


def test_after_its_death_another_serves(pooler, database):
    before = pooler.port
    assert pooler._server.pid is not None
    os.kill(pooler._server.pid, signal.SIGKILL)
    pooler._server._guard.wait(10)
    pooler.start_again_if_dead()
    assert pooler.port != before
    with psycopg.connect(pooler.dsn(database)) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
