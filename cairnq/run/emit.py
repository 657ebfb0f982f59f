"""Events instead of log strings: the code says what happened, one renderer (here: to `logging`) says it in words."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

Emit = Callable[..., None]
"""Called as `emit("lease.lost", task_id=..., name=...)`, from any thread.

`error` holds an exception of the worker's own, `raised` what a handler raised, `stack` a rendered stack.
"""
Report = Callable[[Exception, dict[str, Any]], None]
"""`report(error, info)`: an error that no caller saw; `info` holds the event's name under "event", and its fields."""

_log = logging.getLogger("cairnq")
_LEVELS: Final = {
    **dict.fromkeys(("worker.started", "worker.drained", "database.recovered", "tasks.recovered"), logging.INFO),
    "statement.failed": logging.DEBUG,  # one of many that say the same
}


def emit_to(report: Report | None) -> Emit:
    """Events go to the log, those with an error to `report` as well."""
    if report is None:
        return log_event

    def emit(event: str, /, **fields: Any) -> None:
        log_event(event, **fields)
        error = fields.get("error")
        if isinstance(error, Exception):
            try:
                report(error, {"event": event, **{key: value for key, value in fields.items() if key != "error"}})
            except Exception:  # noqa: BLE001 - the border to the caller's own reporter
                _log.exception("on_error itself raised, at %s", event)

    return emit


def log_event(event: str, /, **fields: Any) -> None:
    """One event as a record of the logger `cairnq`: what somebody should look at as WARNING or ERROR."""
    level = logging.ERROR if "error" in fields else _LEVELS.get(event, logging.WARNING)
    if not _log.isEnabledFor(level):
        return
    stack = fields.pop("stack", None)
    raised = fields.pop("raised", None)
    words = [event, *(f"{key}={value}" for key, value in fields.items())]
    if raised is not None:
        words.append(f"raised={raised!r}")
    if stack is not None:
        words.append(f"\n{stack}")
    _log.log(level, "%s", " ".join(words), exc_info=raised)
