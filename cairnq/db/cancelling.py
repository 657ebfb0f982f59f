"""Raises a cancellation that a library has swallowed.

Before Python 3.12 `asyncio.wait_for`, by which psycopg and its pool wait, returns a result that comes in the same turn
of the loop as a cancellation, and nobody hears of that any more: whoever cancelled would wait for ever.
"""

from __future__ import annotations

import asyncio


def cancellations() -> int:
    """How often the running task was asked to end so far."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def heed_cancellation(since: int) -> None:
    """Raises `CancelledError` where the running task was asked to end since `cancellations()` gave that number."""
    if cancellations() > since:
        raise asyncio.CancelledError
