"""Events instead of log strings: the code says what happened, one renderer (here: to `logging`) says it in words."""

from __future__ import annotations

import logging
from collections.abc import Callable

Emit = Callable[..., None]
"""Called as `emit("lease.lost", task_id=..., worker_id=...)`. An `error` field holds the exception."""

_log = logging.getLogger("cairnq")
_QUIET = frozenset({"worker.ready", "worker.drained", "database.back"})


def log_event(name: str, /, **fields: object) -> None:
    """Render one event as a line of the logger `cairnq`: a warning, an error with its traceback, or plain news."""
    error = fields.get("error")
    level = logging.ERROR if isinstance(error, BaseException) else logging.INFO if name in _QUIET else logging.WARNING
    words = " ".join(f"{key}={value}" for key, value in fields.items())
    _log.log(level, "%s %s", name, words)
