"""The error envelope: what stands in a task's `error` column."""

from __future__ import annotations

from typing import Any

from cairnq.pure.errors import TaskError

Envelope = dict[str, Any]


def envelope(type: str, code: str, message: str, *, retryable: bool, details: Any = None) -> Envelope:  # noqa: A002
    return {"type": type, "code": code, "message": message, "retryable": retryable, "details": details}


def of_exception(error: BaseException) -> Envelope:
    """What a handler raised: a `TaskError` as it asks, anything else `handler_error`, retryable."""
    if isinstance(error, TaskError):
        return envelope(error.type, error.code, error.message, retryable=error.retryable, details=error.details)
    return envelope(type(error).__name__, "handler_error", _message_of(error), retryable=True)


def of_failure(error: Any, *, retryable: bool) -> Envelope:
    """What a handler called `fail` with: an exception, a dict with fields of the envelope, or a message."""
    if isinstance(error, BaseException):
        return {**of_exception(error), "retryable": retryable}
    default = envelope("TaskError", "task_error", "task failed", retryable=retryable)
    if isinstance(error, dict):
        known = {key: value for key, value in error.items() if key in default}
        return {**default, **known, "retryable": retryable} if known else {**default, "details": error}
    return {**default, "message": str(error)}


def storable(error: Envelope) -> Envelope:
    """The same envelope in what JSON can hold: odd characters replaced, odd details shown as text."""
    return {
        "type": _clean(error["type"]),
        "code": _clean(error["code"]),
        "message": _clean(error["message"]),
        "retryable": bool(error["retryable"]),
        "details": _clean(repr(error["details"])),
    }


def handler_timeout(max_run_ms: int) -> Envelope:
    return envelope(
        "HandlerTimeout", "handler_timeout", f"the attempt outran max_run_ms = {max_run_ms}", retryable=True
    )


def unserializable_result(reason: str) -> Envelope:
    return envelope("SerializationError", "unserializable_result", reason, retryable=False)


def no_handler(name: str) -> Envelope:
    return envelope("NoHandler", "no_handler", f"no handler is registered for {name!r}", retryable=False)


def lease_expired() -> Envelope:
    return envelope("LeaseExpired", "lease_expired", "the lease ran out and no attempt was left", retryable=False)


def worker_crashed(message: str, details: Any) -> Envelope:
    return envelope("WorkerCrashed", "worker_crashed", message, retryable=True, details=details)


def interrupted(reason: str) -> Envelope:
    return envelope(
        "Interrupted",
        "interrupted",
        f"the call had started and max_attempts is 1, so it is not run again: {reason}",
        retryable=False,
    )


def _message_of(error: BaseException) -> str:
    try:
        if isinstance(error, SystemExit | KeyboardInterrupt | GeneratorExit):
            # Meant for an interpreter and not for people: "3" alone would say nothing.
            return f"the handler raised {error!r}"
        return str(error)
    except Exception as unshowable:  # noqa: BLE001 - `__str__` is the handler's code: anything may come out of it
        return f"its message cannot be shown: {type(unshowable).__name__}"


def _clean(value: Any) -> str:
    return str(value).replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
