"""What only SQLite has: a file, its locks, its processes. What every database does is in tests/store."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cairnq import SqliteStore
from tests.sqlite.programs import Program


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a database may be made."""
    return tmp_path / "cairnq.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    """A connected store on a fresh file."""
    store = SqliteStore(path, busy_timeout_ms=30_000)
    await store.connect()
    yield store
    await store.close()


@pytest.fixture
def other(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection of somebody else's to that file; made when first asked for, so after the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


@pytest.fixture
def start_program() -> Iterator[Callable[..., Program]]:
    """`start_program(text, *arguments)`: a Python process of its own, driven by lines; ended at the latest here."""
    started: list[Program] = []

    def start(text: str, *arguments: object) -> Program:
        started.append(Program(text, *arguments))
        return started[-1]

    yield start
    for program in started:
        program.close()
