"""Waiting for what no event tells."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(holds: Callable[[], bool]) -> None:
    """Let the loop and the threads turn until it does."""
    while not holds():  # noqa: ASYNC110 - the state of a queue between threads; nobody announces it
        await asyncio.sleep(0.001)  # sleep: gives the other threads the interpreter
