"""The one classifier: how a call came back, and what that means for each of its attempts. Single and batched alike."""

from __future__ import annotations

import asyncio
from typing import Any

from cairnq.pure import backoff
from cairnq.pure import envelope as envelopes
from cairnq.pure.envelope import Envelope
from cairnq.pure.errors import LostLease, SerializationError
from cairnq.pure.models import Settlement
from cairnq.run.attempt import Attempt
from cairnq.run.calls import Call, Cut, Ended
from cairnq.run.options import EngineOptions

DRAINED = "the worker drained before the call returned"


def settlement_of(attempt: Attempt, call: Call, ended: Ended, options: EngineOptions) -> Settlement:
    """What to write for one attempt that the handler did not settle itself."""
    if call.cut is Cut.TIMEOUT:
        return timed_out(attempt, options)
    if ended.error is None:
        return _returned(attempt, call, ended.value)
    if call.cut is Cut.DRAIN:
        return released(attempt, started=attempt.started_at is not None)
    return failed(attempt, describe(ended.error), options)


def released(attempt: Attempt, *, started: bool, reason: str = DRAINED) -> Settlement:
    """Given back. One that had started, with a single attempt allowed, ends `interrupted` instead of running again."""
    cause = envelopes.interrupted(reason) if started else None
    return Settlement.release(attempt.task.id, attempt.task.attempt, started=started, reason=cause)


def timed_out(attempt: Attempt, options: EngineOptions) -> Settlement:
    assert options.max_run_s is not None
    return failed(attempt, envelopes.handler_timeout(round(options.max_run_s * 1000)), options)


def failed(attempt: Attempt, error: Envelope, options: EngineOptions) -> Settlement:
    """As the envelope asks: queued again after the backoff, or failed for good."""
    delay_ms = backoff.delay_ms(
        attempt.task.attempt, base_ms=options.retry_backoff_ms, max_ms=options.retry_backoff_max_ms
    )
    task = attempt.task
    retryable = bool(error["retryable"])
    try:
        return Settlement.fail(task.id, task.attempt, error, retryable=retryable, delay_ms=delay_ms)
    except SerializationError:
        return Settlement.fail(task.id, task.attempt, _storable(error), retryable=retryable, delay_ms=delay_ms)


def describe(error: BaseException) -> Envelope:
    """The envelope of what a handler raised, also where the exception cannot even be shown."""
    try:
        return envelopes.of_exception(error)
    except Exception as unshowable:  # noqa: BLE001 - `__str__` is the handler's code: anything may come out of it
        message = f"its message cannot be shown: {type(unshowable).__name__}"
        return envelopes.envelope(type(error).__name__, "handler_error", message, retryable=True)


def is_reported(call: Call, ended: Ended) -> bool:
    """Whether what the handler raised is news: not when it only did as it was told."""
    if ended.error is None:
        return False
    return call.cut is None or not isinstance(ended.error, (asyncio.CancelledError, LostLease))


def _returned(attempt: Attempt, call: Call, value: Any) -> Settlement:
    task = attempt.task
    result = value
    if call.handler.batch is not None:
        result = value.get(task.id) if isinstance(value, dict) else None
    try:
        return Settlement.complete(task.id, task.attempt, result, forget=call.handler.forget)
    except SerializationError as error:
        reason = envelopes.unserializable_result(str(error))
        return Settlement.fail(task.id, task.attempt, reason, retryable=False)


def _storable(error: Envelope) -> Envelope:
    """The same envelope in what JSON can hold: odd characters replaced, odd details shown as text."""
    return {
        "type": _clean(error["type"]),
        "code": _clean(error["code"]),
        "message": _clean(error["message"]),
        "retryable": bool(error["retryable"]),
        "details": _clean(repr(error["details"])),
    }


def _clean(value: Any) -> str:
    return str(value).replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
