"""A worker's loop is the fastest there is."""

from __future__ import annotations

import asyncio
import importlib
import sys

import pytest
import uvloop

from cairnq_supervisor.roles import loops


async def _own_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_with_the_extra_it_is_uvloops() -> None:
    with loops.runner() as runner:
        assert isinstance(runner.run(_own_loop()), uvloop.Loop)


def test_without_it_is_asyncios_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    without = importlib.reload(loops)
    try:
        with without.runner() as runner:
            assert isinstance(runner.run(_own_loop()), asyncio.SelectorEventLoop)
    finally:
        monkeypatch.undo()
        importlib.reload(loops)
