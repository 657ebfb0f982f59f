"""Supervisors for tests, and the gate at which their handlers wait."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.process.support import Gate, Runs


@pytest.fixture
async def runs(tmp_path: Path, database: str) -> AsyncIterator[Runs]:
    """`await runs.start(config)`. At the end no process, zombie or open event stream of any of them is left."""
    runs = Runs(tmp_path, database)
    yield runs
    await runs.close()


@pytest.fixture
async def gate(tmp_path: Path) -> AsyncIterator[Gate]:
    async with Gate(str(tmp_path / "gate")).open() as gate:
        yield gate
