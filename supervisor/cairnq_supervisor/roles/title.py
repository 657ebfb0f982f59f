"""What `ps` shows of a child: kept up to date, at most once a second, and written only when it changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cairnq_supervisor.system.title import show_title

_INTERVAL = 1.0


async def keep_title(read: Callable[[], str]) -> None:
    """Until cancelled."""
    shown = None
    while True:
        title = read()
        if title != shown:
            show_title(title)
            shown = title
        await asyncio.sleep(_INTERVAL)
