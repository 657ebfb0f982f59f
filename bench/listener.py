"""Listens, as a host's keeper does: `python -m bench.listener DSN CHANNEL`, until its stdin closes."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from bench.process import started


@contextmanager
def listening(dsn: str, channel: str = "cairnq_queued") -> Iterator[None]:
    argv = [sys.executable, "-m", "bench.listener", dsn, channel]
    with started("the listener", argv, {}, lambda line: line == "listening"):
        yield


def main(dsn: str, channel: str) -> None:
    connection = psycopg.connect(dsn, autocommit=True)
    connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    print("listening", flush=True)
    for _ in connection.notifies():
        pass


def _end_with_stdin() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
