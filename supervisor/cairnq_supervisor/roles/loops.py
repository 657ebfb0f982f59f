"""The event loop of a worker process: uvloop's where it is installed (the extra `fast`), else asyncio's own.

Imported before the fork, so that the workers share its code: in each by itself it would take 4 MB.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

try:
    import uvloop
except ImportError:
    fast_loop: Callable[[], asyncio.AbstractEventLoop] | None = None
else:
    fast_loop = uvloop.new_event_loop


def runner() -> asyncio.Runner:
    """Not to be closed: that waits for whatever handlers left, be it one that swallows its cancellation."""
    return asyncio.Runner(loop_factory=fast_loop)
