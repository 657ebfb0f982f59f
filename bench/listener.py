"""A process that listens as a host's keeper does. `python -m bench.listener DSN` runs until its stdin closes."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg


@contextmanager
def listening(dsn: str) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.listener", dsn], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    if process.stdout.readline() != "listening\n":
        raise RuntimeError(f"the listener on {dsn} ended with {process.wait()}")
    yield
    process.stdin.close()
    process.wait()
    process.stdout.close()


def main(dsn: str) -> None:
    connection = psycopg.connect(dsn, autocommit=True)
    connection.execute("listen cairnq_queued")
    print("listening", flush=True)

    def end_with_stdin() -> None:
        sys.stdin.read()
        connection.cancel_safe()
        stopped.set()

    stopped = threading.Event()
    threading.Thread(target=end_with_stdin, daemon=True).start()
    while not stopped.is_set():
        for _ in connection.notifies(timeout=0.5):
            if stopped.is_set():
                break


if __name__ == "__main__":
    main(sys.argv[1])
