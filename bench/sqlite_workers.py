"""Workers of an SQLite file, in processes of their own: ours, and the other SDK's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.support.peers import Peer

PEER_PROGRAM = Path(__file__).parent / "programs" / "sqlite_peer.py"


@contextmanager
def our_worker(dsn: str, concurrency: int = 1, batch: int | None = None) -> Iterator[IO[str]]:
    """What the worker prints, after it said that it is ready. `dsn` is the path of the file."""
    with _running(
        [sys.executable, "-m", "bench.programs.sqlite_ours", dsn, str(concurrency), str(batch or "")]
    ) as output:
        yield output


@contextmanager
def peers_worker(peer: Peer, dsn: str, concurrency: int = 1, batch: int | None = None) -> Iterator[IO[str]]:
    with _running([str(peer.python), "-I", str(PEER_PROGRAM), dsn, str(concurrency), str(batch or "")]) as output:
        yield output


@contextmanager
def _running(command: list[str]) -> Iterator[IO[str]]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        raise RuntimeError(f"{' '.join(command)} ended with {process.wait()}")
    try:
        yield process.stdout
    finally:
        process.stdin.close()
        process.stdout.read()
        process.wait()
        process.stdout.close()
