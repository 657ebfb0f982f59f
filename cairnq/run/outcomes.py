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
    return failed(attempt, envelopes.of_exception(ended.error), options)


def released(attempt: Attempt, *, started: bool, reason: str = DRAINED) -> Settlement:
    """Given back. One that had started, with a single attempt allowed, ends `interrupted` instead of running again."""
    cause = envelopes.interrupted(reason) if started else None
    return Settlement.release(attempt.task.id, attempt.task.attempt, started=started, reason=cause)


def timed_out(attempt: Attempt, options: EngineOptions) -> Settlement:
    assert options.max_run_s is not None
    return failed(attempt, envelopes.handler_timeout(round(options.max_run_s * 1000)), options)


def failed(attempt: Attempt, error: Envelope, options: EngineOptions) -> Settlement:
    """As the envelope asks: queued again after the backoff, or failed for good. What JSON cannot hold is replaced."""
    try:
        return failed_as_told(attempt, error, options)
    except SerializationError:
        return failed_as_told(attempt, envelopes.storable(error), options)


def failed_as_told(attempt: Attempt, error: Envelope, options: EngineOptions) -> Settlement:
    """The same, for an envelope that must be JSON. Raises `SerializationError`."""
    task, retryable = attempt.task, bool(error["retryable"])
    delay_ms = backoff.delay_ms(task.attempt, base_ms=options.retry_backoff_ms, max_ms=options.retry_backoff_max_ms)
    return Settlement.fail(task.id, task.attempt, error, retryable=retryable, delay_ms=delay_ms)


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
