"""Tests on several workers of pytest-xdist: fleets come last, and those marked `alone` have the machine to themselves.

The hooks are taken over by conftest.py. Locks are held on two files of this folder, so they end with their holder.
"""

from __future__ import annotations

import fcntl
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ALONE = "alone"

FLEETS = ("process", "fault", "torture")
"""Folders whose tests start half a dozen processes each, which mostly wait: after what computes, side by side."""

SHARED = ("sql",)
"""Folders whose files share a fixture for each server that takes long to make."""

TURNSTILE = Path(__file__)
"""Passed by everybody, one by one: whoever waits for the room to empty keeps others from entering."""

ROOM = Path(__file__).with_name("__init__.py")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those alone last of all, so that no worker waits for the others while there is something to do beside them."""
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    if item.get_closest_marker(ALONE) is not None:
        return 2
    return int(any(part in FLEETS for part in item.path.parts))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    """Outside of the test's time limit: a turn may take long to come."""
    if not hasattr(item.config, "workerinput"):
        return (yield)
    with _turn(alone=item.get_closest_marker(ALONE) is not None):
        return (yield)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file goes to one worker whole; so does a folder of `SHARED` with one of its servers."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            for folder in SHARED:
                if file.startswith(f"tests/{folder}/"):
                    return " ".join([folder, *re.findall(r"\bpg\d+\b", nodeid)])
            return file

    config.option.loadscopereorder = False  # in the order of the collection, or `alone` would not come last
    return ByFile(config, log)


@contextmanager
def _turn(*, alone: bool) -> Iterator[None]:
    with TURNSTILE.open() as turnstile, ROOM.open() as room:
        fcntl.flock(turnstile, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(turnstile, fcntl.LOCK_UN)
        try:
            yield
        finally:
            # Not by closing alone: a child that a test has forked may still have the descriptor.
            fcntl.flock(room, fcntl.LOCK_UN)
