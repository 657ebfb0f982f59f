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
    # Meant for an interpreter and not for people: "3" alone would say nothing.
    is_an_end = isinstance(error, SystemExit | KeyboardInterrupt | GeneratorExit)
    message = f"the handler raised {error!r}" if is_an_end else str(error)
    return envelope(type(error).__name__, "handler_error", message, retryable=True)


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
