"""Waiting for the database with a limit, without taking this process's own blocked loop for a silent database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from cairnq.pure.errors import DatabaseUnavailable

T = TypeVar("T")

_BLOCKED_S = 0.1
"""A timer that fires so much too late was not late by itself."""

_CATCHING_UP_S = 1.0
"""For what a blocked loop has not read yet, or not even sent."""


async def within(work: Awaitable[T], timeout_s: float, what: str) -> T:
    """The result of `work`, or `DatabaseUnavailable` on time; what is given up is cancelled, and not waited for.

    Not `asyncio.wait_for`: that waits for the cancellation to end, which on a dead network takes psycopg ten seconds.
    """
    task = asyncio.ensure_future(work)
    try:
        await wait_for_reply(task, timeout_s, what)
    except BaseException:
        _abandon(task)
        raise
    return task.result()


async def wait_for_reply(task: asyncio.Future[T], timeout_s: float, what: str) -> None:
    """Until `task` has ended. Raises `DatabaseUnavailable` on time; what becomes of the task is the caller's.

    Where a handler blocked the loop for longer, the reply may lie there unread: then there is a little more time.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    done, _ = await asyncio.wait({task}, timeout=timeout_s)
    late_s, blocked = loop.time() - deadline, ""
    if not done and late_s > _BLOCKED_S:
        done, _ = await asyncio.wait({task}, timeout=_CATCHING_UP_S)
        blocked = f", nor {_CATCHING_UP_S:g} s after this process's loop had been blocked for {late_s:.3g} s or more"
    if not done:
        raise DatabaseUnavailable(f"{what} had no reply within {timeout_s:.3g} s{blocked}")


def _abandon(task: asyncio.Future[T]) -> None:
    """Its end comes too late to matter; reading the exception keeps asyncio from complaining about it."""
    task.cancel()
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
